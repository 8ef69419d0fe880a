"""The conformance suite without its cluster: its shapes, its page, and that a wrong migration is found.

The recorded views are what a run on the cluster saw of some shapes (tests/e2e/differential/recorded).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.differential import page, probe, recorded
from tests.e2e.differential.compare import Difference, differences
from tests.e2e.differential.explain import Facts
from tests.e2e.differential.judge import judge_views
from tests.e2e.differential.rows import EXPLANATIONS, explain
from tests.e2e.differential.shapes import SHAPES
from tests.e2e.differential.view import View
from trainjob.kube.yaml import dump_all
from trainjob.migrate import migrate_text

ROOT = Path(__file__).parents[2]
CASES = ROOT / "migration" / "cases"


def _after(folder: Path) -> str:
    """What a case of a PyTorchJob became."""
    before = next(folder.glob("before.*")).read_text(encoding="utf-8")
    after = folder / "after.yaml"
    return after.read_text(encoding="utf-8") if "PyTorchJob" in before and after.is_file() else ""


def test_the_shapes_are_many_and_cover_every_case() -> None:
    """At least 40, with each case that converts; CI runs at most 15 of them."""
    names = [shape.name for shape in SHAPES]
    assert len(names) == len(set(names)) >= 90
    assert 8 <= sum(shape.ci for shape in SHAPES) <= 15
    converted = {folder.name for folder in CASES.iterdir() if "kind: TrainJob" in _after(folder)}
    assert {name.partition("/")[0] for name in names} >= converted


def test_every_shape_converts() -> None:
    """With one job for each, and no error."""
    for shape in SHAPES:
        result = migrate_text(dump_all([*shape.documents]))
        assert len(result.jobs) == 1, (shape.name, result.findings)


def test_the_page_says_what_the_rows_say() -> None:
    """Same rows, same texts; each was seen in a shape."""
    written = page.PAGE.read_text(encoding="utf-8")
    assert page.ids(written) == [row.id for row in EXPLANATIONS]
    seen = page.seen_in(written)
    assert all(seen.values())
    fresh = page.render({key: [text] for key, text in seen.items()})
    assert fresh == written, "run WRITE_DIFFERENCES=1 pytest tests/e2e/differential on a cluster"


def test_rows_are_unique_and_name_known_findings() -> None:
    """A code that no rule has would never hold."""
    ids = [row.id for row in EXPLANATIONS]
    assert len(ids) == len(set(ids))
    for row in EXPLANATIONS:
        for code in row.codes:
            assert (ROOT / "docs" / "rules" / f"{code}.md").is_file(), (row.id, code)


def test_a_row_with_a_finding_holds_only_beside_it() -> None:
    """The same difference is unexplained in a job whose migration said nothing."""
    by_code = [row for row in EXPLANATIONS if row.codes]
    assert by_code
    difference = Difference("job is gone after its end", "True", "False")
    assert explain(difference, Facts(frozenset({"TJ405"}))) is not None
    assert explain(difference, Facts(frozenset({"TJ404"}))) is None


@pytest.mark.parametrize("name", sorted(file.stem for file in recorded.FOLDER.glob("*.json")))
def test_a_recorded_run_has_no_unexplained_difference(name: str) -> None:
    """What a cluster showed is still explained by the rows of today."""
    v1, v2, facts = recorded.read(name)
    assert judge_views(name, v1, v2, facts).unexplained == ()


def _set(path: str, value: str | None) -> Any:
    def change(view: View) -> None:
        assert path in view, path
        if value is None:
            del view[path]
        else:
            view[path] = value

    return change


def _drop(prefix: str) -> Any:
    def change(view: View) -> None:
        found = [path for path in view if path.startswith(prefix)]
        assert found, prefix
        for path in found:
            del view[path]

    return change


# (shape, what breaks in v2, the difference that must be named)
PLANTS = [
    ("pod-env", _set("rank 0 train: env.PLAIN", None), "train: env.PLAIN"),
    ("pod-env", _set("rank 1 train: env.FROM_SECRET", "another"), "train: env.FROM_SECRET"),
    ("pod-env", _set("rank 1 train: env.RANK", "0"), "train: env.RANK"),
    ("pod-env", _set("rank 0 train: env.WORLD_SIZE", "1"), "train: env.WORLD_SIZE"),
    ("pod-env", _set("rank 1 train: rendezvous.met", "name does not resolve"), "train: rendezvous.met"),
    ("pod-env", _set("job pods", "3"), "job pods"),
    ("pod-env", _set("rank 0 train: argv", '["python", "other.py"]'), "train: argv"),
    ("pod-env", _set("rank 0 train: limits.cpu quota", "-1"), "train: limits.cpu quota"),
    ("pod-env", _drop("rank 1 "), "pod"),
    ("pod-volumes", _drop("rank 0 train: mounts./data."), "train: mounts./data.type"),
    ("pod-volumes", _set("rank 0 train: mounts./dev/shm.size", "67108864"), "train: mounts./dev/shm.size"),
    ("pod-volumes", _set("rank 0 train: mounts./etc/map.ro", "false"), "train: mounts./etc/map.ro"),
    ("pod-identity", _set("rank 0 train: user.uid", "1000"), "train: user.uid"),
    ("pod-identity", _set("rank 0 pod serviceAccountName", "default"), "pod serviceAccountName"),
    ("pod-identity", _set("rank 0 train: rights.NoNewPrivs", "0"), "train: rights.NoNewPrivs"),
    ("pod-placement", _set("rank 0 pod priorityClassName", None), "pod priorityClassName"),
    ("pod-placement", _set("rank 0 pod nodeSelector.kubernetes.io/os", None), "pod nodeSelector.kubernetes.io/os"),
    ("end-exit-1-never", _set("job outcome", "Succeeded"), "job outcome"),
    ("end-exit-1-never", _set("rank 0 tried again", "True"), "tried again"),
    ("end-exit-1-never", _set("rank 0 pod restartPolicy", "OnFailure"), "pod restartPolicy"),
    ("end-queue-priority", _set("queue priority", "0"), "queue priority"),
    ("end-queue-priority", _set("queue pods", "1"), "queue pods"),
    ("end-queue-priority", _set("queue usage nvidia.com/gpu", "1"), "queue usage nvidia.com/gpu"),
    ("end-queue-priority", _set("queue name", ""), "queue name"),
]


@pytest.mark.parametrize(("name", "break_it", "path"), PLANTS, ids=[f"{n}:{p}" for n, _, p in PLANTS])
def test_a_planted_loss_is_named(name: str, break_it: Any, path: str) -> None:
    """Whatever a wrong migration loses is reported, and no row takes it for right."""
    v1, v2, facts = recorded.read(name)
    break_it(v2)
    found = [difference.what for difference in judge_views(name, v1, v2, facts).unexplained]
    assert path in found


@pytest.mark.parametrize(
    ("words", "env", "found"),
    [
        (["python", "x.py"], {"MASTER_ADDR": "a", "MASTER_PORT": "1", "RANK": "2"}, ("a", "1", "2", "3")),
        (["torchrun", "x.py"], {"PET_MASTER_ADDR": "b", "PET_NODE_RANK": "1"}, ("b", "", "1", "3")),
        (
            ["torchrun", "--nnodes=2", "--node_rank", "1", "--master_addr=c", "--master_port=9", "x.py"], {},
            ("c", "9", "1", "2"),
        ),
        (
            ["python", "-m", "torch.distributed.run", "--nnodes", "4", "--master-addr", "d", "x.py"], {},
            ("d", "", "0", "4"),
        ),
        (["wrap", "torchrun", "--rdzv-endpoint=localhost", "x.py"], {}, ("localhost", "29400", "0", "3")),
        (
            ["accelerate", "launch", "--num_machines", "2", "--machine_rank=1", "--main_process_ip=e", "x.py"], {},
            ("e", "", "1", "2"),
        ),
    ],
)  # fmt: skip
def test_the_probe_finds_rank_0_as_a_launcher_does(words: Any, env: Any, found: Any) -> None:
    """Flags win over PET_*, a rendezvous endpoint over both; plain programs read v1's variables."""
    assert probe.endpoint(words, {"PET_NNODES": "3", **env}) == found


def test_ranks_with_the_same_difference_are_one_row() -> None:
    """And a pod that only one side has is one line, not its hundred fields."""
    v1 = {"rank 0 pod a": "1", "rank 1 pod a": "1", "rank 1 train: env.X": "1"}
    v2 = {"rank 0 pod a": "2", "rank 1 pod a": "2"}
    assert differences(v1, v2) == [
        Difference("pod a", "1", "2", (0, 1)),
        Difference("train said", "there", "(not there)", (1,)),
    ]
