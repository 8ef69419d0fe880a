"""Running programs, telling progress, keeping state."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cluster import context, stack, up
from tests.cluster.__main__ import main
from tests.cluster.container import changes, recipe
from tests.cluster.context import Context, read_json
from tests.cluster.problems import ClusterError
from tests.cluster.progress import Progress
from tests.cluster.shell import CommandError, Shell


@pytest.fixture
def sh(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "log.txt")


def test_a_failed_program_is_told_with_its_last_words_and_a_next_step(sh: Shell) -> None:
    with pytest.raises(CommandError) as caught:
        sh.run("sh", "-c", "echo it broke >&2; exit 3")
    text = str(caught.value)
    assert "failed (exit 3)" in text
    assert "    it broke\n" in text
    assert f"Next: see {sh.log}" in text
    assert "# exit 3" in sh.log.read_text()


def test_a_program_that_is_not_there_is_told(sh: Shell) -> None:
    with pytest.raises(CommandError, match="cannot start no-such-program"):
        sh.run("no-such-program")
    assert sh.run("no-such-program", check=False).code == 127


def test_at_the_time_limit_the_children_end_too(sh: Shell, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(CommandError, match="did not end within"):
        sh.run("sh", "-c", f"(sleep 1; touch {mark}) & wait", timeout=0.2)
    time.sleep(1.2)
    assert not mark.exists()


def test_both_ends_of_a_pipe_have_to_succeed(sh: Shell, tmp_path: Path) -> None:
    sh.pipe(["echo", "through"], ["sh", "-c", f"cat > {tmp_path}/out"])
    assert (tmp_path / "out").read_text() == "through\n"
    for producer, consumer in ((["false"], ["cat"]), (["true"], ["false"])):
        with pytest.raises(CommandError, match="failed"):
            sh.pipe(producer, consumer)


def test_steps_are_shown_and_recorded_with_their_times(tmp_path: Path) -> None:
    progress = Progress(stream=io.StringIO())
    with pytest.raises(ValueError, match="no"), progress.step("outer"), progress.step("inner"):
        raise ValueError("no")
    file = tmp_path / "timings" / "test.json"
    progress.record(file, "up", "failed", {"source": "source"})
    progress.record(file, "up", "ok", {})
    runs = json.loads(file.read_text())
    assert [run["outcome"] for run in runs] == ["failed", "ok"]
    assert [step["step"] for step in runs[0]["steps"]] == ["outer / inner", "outer"]
    assert runs[0]["source"] == "source"
    assert isinstance(progress.stream, io.StringIO)
    assert "inner: 0.0 s, failed" in progress.stream.getvalue()


def test_the_work_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(context.HOME_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert context.home() == Path("/cache/trainjob/cluster")
    monkeypatch.setenv(context.HOME_VARIABLE, "/elsewhere")
    assert context.home() == Path("/elsewhere")


@pytest.mark.parametrize("name", ["", "Upper", "-x", "a_b", "a" * 40, "../x"])
def test_a_name_that_no_container_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="is no cluster name"):
        Context(name, home=tmp_path)


def test_programs_never_see_the_users_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/user/.kube/config")
    ctx = Context("test", home=tmp_path)
    assert ctx.sh.run("sh", "-c", "echo $KUBECONFIG").out.strip() == str(tmp_path / "clusters" / "test" / "kubeconfig")


def test_one_run_at_a_time(tmp_path: Path) -> None:
    other = Context("two", home=tmp_path)
    with (
        Context("one", home=tmp_path).lock(),
        pytest.raises(ClusterError, match="another run is at work"),
        other.lock(patience=0),
    ):
        pass
    with other.lock(patience=0):
        pass


def test_state_that_was_cut_off_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"phase": "ma')
    assert read_json(tmp_path / "cluster.json") == {}


def test_a_recipe_changes_with_each_of_its_parts() -> None:
    assert recipe("a", "b") == recipe("a", "b")
    assert len({recipe("a", "b"), recipe("ab"), recipe("b", "a")}) == 3


def test_an_image_keeps_no_command_of_its_making() -> None:
    assert changes("abc", ("/manager",), user="65532:65532") == [
        "--change", 'ENTRYPOINT ["/manager"]', "--change", "CMD []", "--change", "USER 65532:65532",
        "--change", "LABEL dev.trainjob.recipe=abc",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "refusal",
    [
        'admission webhook "validator.trainer.kubeflow.org" denied the request: must contain the required container',
        "",
    ],
)
def test_a_refusal_by_a_webhook_is_an_answer(refusal: str) -> None:
    assert stack.webhook_answered(refusal)


@pytest.mark.parametrize(
    "absence",
    [
        'failed calling webhook "x": Post "https://y.svc:443/z": dial tcp 10.96.0.1:443: connect: connection refused',
        'failed calling webhook "x": no endpoints available for service "y"',
        'error: resource mapping not found: no matches for kind "JobSet" in version "jobset.x-k8s.io/v1alpha2"',
        "Unable to connect to the server: dial tcp 127.0.0.1:6443",
    ],
)
def test_an_absent_webhook_is_no_answer(absence: str) -> None:
    assert not stack.webhook_answered(absence)


def test_pods_that_are_done_need_not_be_ready() -> None:
    def pod(name: str, phase: str, ready: str, namespace: str = "n") -> dict[str, object]:
        conditions = [{"type": "Ready", "status": ready}]
        return {
            "metadata": {"namespace": namespace, "name": name},
            "status": {"phase": phase, "conditions": conditions},
        }

    pods = [pod("up", "Running", "True"), pod("done", "Succeeded", "False"), pod("new", "Pending", "False")]
    pods.append(pod("of-a-test", "Pending", "False", "other"))
    assert up.not_ready({"items": pods}, {"n"}) == ["n/new"]


@pytest.mark.parametrize(
    ("status", "done"),
    [
        ({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, True),
        # The old pod still answers, the new one does not yet.
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}, False),
        ({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, False),
        ({}, False),
    ],
)
def test_a_deployment_is_done_when_only_its_latest_pods_are_left(status: dict[str, int], done: bool) -> None:
    deployment = {"metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": status}
    assert stack.is_rolled_out(deployment) is done


def test_a_command_without_cluster_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(context.HOME_VARIABLE, str(tmp_path))
    assert main(["kubeconfig", "--name", "none"]) == 1
    assert "Next: run: python -m tests.cluster up --name none" in capsys.readouterr().err


@pytest.mark.skipif(not shutil.which("setpriv"), reason="only with util-linux")
def test_a_bound_program_ends_when_this_process_is_killed(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from tests.cluster.shell import Shell;"
        f"Shell(Path({str(tmp_path / 'log')!r})).run('sh', '-c', 'echo $$ > {tmp_path}/pid; exec sleep 60', bound=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        for _ in range(200):
            if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip():
                break
            time.sleep(0.05)
        parent.kill()
    child = Path("/proc") / (tmp_path / "pid").read_text().strip()
    for _ in range(100):
        if not child.exists() or "State:\tZ" in (child / "status").read_text():
            return
        time.sleep(0.05)
    pytest.fail("it lives on", pytrace=False)
