"""An outcome judged: which differences it shows, and which of them nothing explains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.e2e.differential.compare import Difference, differences
from tests.e2e.differential.explain import Explanation, Facts, Tag
from tests.e2e.differential.rows import explain
from tests.e2e.differential.run import Outcome
from tests.e2e.differential.shape import Object
from tests.e2e.differential.view import View, views


@dataclass(frozen=True, slots=True)
class Verdict:
    """`explained`: each explanation that was needed, with what it explains."""

    shape: str
    explained: tuple[tuple[Explanation, Difference], ...]
    unexplained: tuple[Difference, ...]

    def table(self) -> str:
        """What nothing explains, for a person."""
        return "\n".join(f"  {self.shape}: {difference.row()}" for difference in self.unexplained)


def judge(outcome: Outcome) -> Verdict:
    """Compares both sides of an outcome."""
    v1, v2 = views(outcome)
    return judge_views(outcome.shape.name, v1, v2, facts(outcome))


def judge_views(shape: str, v1: View, v2: View, known: Facts) -> Verdict:
    explained, unexplained = [], []
    for difference in differences(v1, v2):
        row = explain(difference, known)
        if row is None:
            unexplained.append(difference)
        else:
            explained.append((row, difference))
    return Verdict(shape, tuple(explained), tuple(unexplained))


def facts(outcome: Outcome) -> Facts:
    """What a row may ask of a job: the codes of its migration, and its kind of roles."""
    roles = outcome.v1.manifest["spec"]["pytorchReplicaSpecs"]
    lines = [_command(role) for role in roles.values()]
    v1, v2 = views(outcome)
    said = {
        Tag.NO_MASTER: "Master" not in roles,
        Tag.NO_COUNT: all(line and not (_LAUNCHER.search(line) and not _OWN_COUNT.search(line)) for line in lines),
        Tag.WORKER_GOES_ON: v1.get("job outcome") == "Succeeded" and any(_unfinished(v1)),
        Tag.FAILED: v1.get("job outcome") == v2.get("job outcome") == "Failed",
        Tag.TRIED_AGAIN: "True" in _again(v1) and "True" in _again(v2),
        Tag.TORCHRUN: all(_BARE.match(line) for line in lines) and not _is_worker(v1),
        Tag.TORCH_WORKERS: _is_worker(v1),
        Tag.ALWAYS: any(role.get("restartPolicy") == "Always" for role in roles.values()),
    }
    return Facts(
        frozenset(finding.code for finding in outcome.findings), frozenset(tag for tag, holds in said.items() if holds)
    )


def _is_worker(v1: View) -> bool:
    return any(path.endswith("env.TORCHELASTIC_RUN_ID") for path in v1)


def _unfinished(v1: View) -> Iterator[str]:
    for path, value in v1.items():
        if re.fullmatch(r"rank [1-9]\d* end", path) and not value.startswith("0 "):
            yield path


def _again(view: View) -> list[str]:
    return [value for path, value in view.items() if path.endswith(" tried again")]


_LAUNCHER: Final = re.compile(r"torchrun|torch\.distributed")
_BARE: Final = re.compile(r"torchrun |python3? -m torch\.distributed\.")
_OWN_COUNT: Final = re.compile(r"nproc[-_]per[-_]node")


def _command(role: Object) -> str:
    """The command line of a role's training container; empty when the image's entrypoint decides."""
    containers = role["template"]["spec"]["containers"]
    main = next(container for container in containers if container["name"] == "pytorch")
    return " ".join([*main["command"], *main.get("args", [])]) if main.get("command") else ""


def seen(verdicts: Iterable[Verdict]) -> dict[str, list[str]]:
    """Explanation -> the shapes that needed it."""
    out: dict[str, set[str]] = {}
    for verdict in verdicts:
        for row, _ in verdict.explained:
            out.setdefault(row.id, set()).add(verdict.shape)
    return {key: sorted(names) for key, names in out.items()}
