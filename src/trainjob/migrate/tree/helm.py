"""Helm charts: rendered by the helm of the machine, with a way back to the lines of the templates.

Templates are not rewritten. helm (3.x or 4.x) writes `# Source: <chart>/templates/<file>` before each
document; inside a file the lines are aligned: text outside of `{{ }}` must agree.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from trainjob.findings import Finding, Location, Severity
from trainjob.kube import yaml
from trainjob.migrate.codes import TEMPLATE_EDIT
from trainjob.migrate.fields import claim_tree
from trainjob.migrate.kinds.registry import CONVERTED, rules_of
from trainjob.migrate.rule import Outcome
from trainjob.migrate.tree.align import Lines, align
from trainjob.targets import API_VERSION
from trainjob.v1.kinds import MENTIONED, MPI, Kind, kind_of

VARIABLE: Final = "TRAINJOB_HELM"
CHART: Final = "Chart.yaml"
_SECONDS: Final = 120
_SOURCE: Final = re.compile(r"^# Source: (\S+)$", re.M)
_INSTALL: Final = f"install helm 3, or set ${VARIABLE}; or render it elsewhere: helm template CHART | migrate -"


class HelmError(RuntimeError):
    """The chart cannot be rendered. `fix` says what to do."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message, self.fix = message, fix


@dataclass(frozen=True, slots=True)
class Settings:
    """How to render: values files, release name (default: the chart's name), namespace."""

    values: tuple[Path, ...] = ()
    release: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a rendered line comes from. `action`: the `{{ }}` that made it, empty for literal text."""

    file: str
    line: int
    action: str = ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A chart as helm prints it; `origins` has one entry for each line of the text."""

    chart: str
    text: str
    origins: Sequence[Origin | None]

    def origin(self, line: int) -> Origin | None:
        """The origin of a 1-based line."""
        return self.origins[line - 1] if 0 < line <= len(self.origins) else None

    def mapped(self, finding: Finding) -> Finding:
        """A finding about a rendered line, moved to the template."""
        where = finding.where
        origin = self.origin(where.line) if where is not None else None
        if where is None or origin is None:
            return finding
        made = f" (made by {origin.action})" if origin.action else ""
        place = Location(origin.file, origin.line, 1, where.path)
        return replace(finding, where=place, message=f"{finding.message}{made}")


def charts(root: Path) -> Iterator[Path]:
    """The outermost charts below a folder whose files speak of PyTorchJobs."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        if CHART in files:
            folders.clear()
            if any(_speaks_of_jobs(f) for f in Path(folder).rglob("*") if f.is_file()):
                yield Path(folder)


def _speaks_of_jobs(path: Path) -> bool:
    try:
        return bool(MENTIONED.search(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return False


def find_helm(environ: Mapping[str, str] | None = None) -> Path:
    """helm: $TRAINJOB_HELM or on PATH. Raises HelmError."""
    env = os.environ if environ is None else environ
    named = env.get(VARIABLE, "").strip() or "helm"
    found = shutil.which(named, path=env.get("PATH"))
    if found is None:
        raise HelmError(f"it is a Helm chart and {named!r} is no program here", _INSTALL)
    return Path(found)


def render(helm: Path, chart: Path, shown: str, settings: Settings) -> Rendered:
    """The chart as helm renders it, without a cluster. Raises HelmError."""
    command = [str(helm), "template", settings.release or _name(chart), str(chart)]
    for values in settings.values:
        command += ["--values", str(values)]
    if settings.namespace:
        command += ["--namespace", settings.namespace]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise HelmError(f"helm took more than {_SECONDS} seconds") from None
    except OSError as err:
        raise HelmError(f"{helm} cannot be run: {err.strerror}", _INSTALL) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("Error: ")
        raise HelmError(f"helm fails: {said}", "give values with --helm-values, or run `helm dependency build`")
    text = done.stdout.decode("utf-8")
    return Rendered(shown, text, _origins(text, chart, shown))


def _name(chart: Path) -> str:
    try:
        data = yaml.load((chart / CHART).read_text(encoding="utf-8"))[0].data
        return str(data["name"])
    except (OSError, yaml.YamlError, IndexError, KeyError, TypeError):
        return chart.resolve().name


def _origins(text: str, chart: Path, shown: str) -> list[Origin | None]:
    out: list[Origin | None] = []

    @cache
    def template(source: str) -> Lines | None:
        file = chart / source.partition("/")[2]
        try:
            return Lines.of(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return None

    for part in yaml.split(text):
        lines = part.text.splitlines()
        source = _SOURCE.search(part.text)
        known = template(source[1]) if source else None
        if source is None or known is None:
            out += [None] * len(lines)
            continue
        file = f"{shown}/{source[1].partition('/')[2]}"
        for index in align(lines, known):
            out.append(None if index is None else Origin(file, index + 1, known.action(index)))
    return out


def edits(rendered: Rendered) -> Iterator[Finding]:
    """The lines of the templates that make a PyTorchJob, each with what to write there, once."""
    told: dict[tuple[str, int], dict[str, str]] = {}
    names: dict[tuple[str, int], str] = {}
    for doc in yaml.split(rendered.text):
        if not MENTIONED.search(doc.text):
            continue
        try:
            data = yaml.parse(doc).data
        except yaml.YamlError:
            continue
        if not isinstance(data, Mapping) or data.get("kind") not in CONVERTED:
            continue
        for path, becomes in _units(data):
            origin = rendered.origin(doc.locate(path).line)
            if origin is not None:
                at = (origin.file, origin.line)
                told.setdefault(at, {}).setdefault(becomes, yaml.dotted(path))
                names[at] = origin.action
    for (file, line), fields in sorted(told.items()):
        what = "; ".join(f"{path} becomes {becomes}" for becomes, path in fields.items())
        made = f" (made by {names[file, line]})" if names[file, line] else ""
        yield Finding(TEMPLATE_EDIT, Severity.NOTE, f"edit this line of the template: {what}{made}",
                      Location(file, line, 1))  # fmt: skip


def _units(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The fields of a job that change: (path, what it becomes)."""
    yield ("apiVersion",), API_VERSION
    yield ("kind",), "TrainJob"
    kind = kind_of(data)
    yield (
        kind.path,
        "`spec.trainer`, one for all roles" if kind is not MPI else "`spec.trainer`, and a runtime for Workers",
    )
    yield from _walk(data.get("metadata") or {}, ("metadata",), ("metadata",), kind)
    yield from _walk(data.get("spec") or {}, ("spec",), ("spec",), kind)


def _walk(
    value: Any, path: tuple[str | int, ...], pattern: tuple[str, ...], kind: Kind
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    found = claim_tree(rules_of(kind)).find(pattern)
    if found is not None:
        claim = found[1]
        if claim.outcome is Outcome.CARRIED and claim.field == claim.becomes:
            return
        yield path, f"`{claim.becomes}`" if claim.becomes else str(claim.outcome)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            part = "*" if pattern == kind.path else str(key)
            yield from _walk(item, (*path, key), (*pattern, part), kind)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _walk(item, (*path, i), (*pattern, "[]"), kind)
