"""TJ528: what the gate refuses is told before a cluster does."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.validate.objects import put, runtime, trainjob
from trainjob import emit
from trainjob.catalog import catalog
from trainjob.cli import command
from trainjob.findings import Severity
from trainjob.kube.yaml import dump
from trainjob.targets import DEFAULT, TARGETS, Target
from trainjob.validate import check_documents, check_trainjob


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", sorted(catalog()))
@pytest.mark.parametrize("nodes", [1, 2, 8])
def test_several_nodes_on_a_runtime_for_one(target: Target, name: str, nodes: int) -> None:
    job = put(put(trainjob(target), "spec.runtimeRef.name", name), "spec.trainer.numNodes", nodes)
    known = {each: emit.for_target(catalog()[each].manifest, target) for each in catalog()}
    found = [f for f in check_documents([job], target, known) if f.code == "TJ528"]
    wanted = nodes > 1 and catalog()[name].topology == "single-node"
    assert len(found) == wanted
    for finding in found:
        assert finding.severity is Severity.WARNING
        assert finding.where
        assert finding.where.path == "spec.trainer.numNodes"
        assert f"{nodes} nodes on {name}, a runtime for one" in finding.message
        assert "multi-node" in finding.fix


def test_runtimes_of_others_are_not_judged() -> None:
    job = put(trainjob(DEFAULT), "spec.trainer.numNodes", 4)
    assert "TJ528" not in {f.code for f in check_trainjob(job, DEFAULT, runtime(DEFAULT))}


def test_the_command_fails_on_it(tmp_path: Path) -> None:
    job = put(trainjob(DEFAULT), "spec.runtimeRef.name", "torch-fsdp-8gpu")
    file = tmp_path / "job.yaml"
    file.write_text(dump(job), encoding="utf-8")
    result = CliRunner().invoke(command, ["validate", str(file)])
    assert result.exit_code == 1
    assert "warning[TJ528]" in result.stderr
    file.write_text(dump(put(job, "spec.trainer.numNodes", 1)), encoding="utf-8")
    assert "TJ528" not in CliRunner().invoke(command, ["validate", str(file)]).stderr


@pytest.mark.parametrize("runtime_name", ["torch-fsdp-multinode", "torch-v1-compat-multinode"])
def test_build_asks_for_a_reason(runtime_name: str) -> None:
    line = ["build", "--name", "two", "--runtime", runtime_name, "--nodes", "2", "--image", "a/b:1"]
    refused = CliRunner().invoke(command, [*line, "--", "torchrun", "t.py"])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "2 nodes: say why one node is not enough" in refused.stderr
    assert CliRunner().invoke(command, [*line, "--allow-multi-node", " ", "--", "torchrun", "t.py"]).exit_code == 1
    allowed = CliRunner().invoke(command, [*line, "--allow-multi-node", "70B", "--", "torchrun", "t.py"])
    assert allowed.exit_code == 0, allowed.stderr
    assert "trainjob.dev/allow-multi-node: 70B" in allowed.stdout
