"""What happens to jobs when their runtime is changed, deprecated, replaced or deleted."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kube import TRAIN_IMAGE, Kubectl
from trainjob.catalog import catalog
from trainjob.kube.yaml import dump, dump_all

Seen = Callable[[str], None]
Manifest = dict[str, Any]
KIND = "clustertrainingruntime"
TRAINJOB = str(Path(sys.executable).with_name("trainjob"))
# Says the form of its runtime, then waits to be told its exit code.
PROGRAM = "echo form=$FORM; while [ ! -e /tmp/go ]; do sleep 1; done; exit $(cat /tmp/go)"


def runtime(name: str, form: str) -> Manifest:
    """torch-fsdp-cpu with the image of the cluster, small, and a variable that tells its version."""
    out: Manifest = copy.deepcopy(dict(catalog()["torch-fsdp-cpu"].manifest))
    out["metadata"]["name"] = name
    pod = out["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["terminationGracePeriodSeconds"] = 1
    node = pod["containers"][0]
    node["image"] = TRAIN_IMAGE
    node["resources"] = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
    node["env"].append({"name": "FORM", "value": form})
    return out


def job(name: str, of: str, *, suspend: bool = False, queue: str = "") -> Manifest:
    spec: Manifest = {"runtimeRef": {"name": of}, "trainer": {"numNodes": 1, "command": ["sh", "-c", PROGRAM]}}
    if suspend:
        spec["suspend"] = True
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata, "spec": spec}


@pytest.fixture
def names(kubectl: Kubectl, cluster: Kubectl) -> Iterator[tuple[str, str]]:
    """Names for an old and a new version; the runtimes go away with the test."""
    stem = f"e2e-up-{uuid.uuid4().hex[:6]}"
    yield stem, f"{stem}-v2"
    kubectl.run("delete", "trainjobs", "--all", check=False)
    for name in (stem, f"{stem}-v2"):
        cluster.run("delete", KIND, name, "--ignore-not-found", check=False)


def said_form(kubectl: Kubectl, name: str, *, attempt: int | None = 0) -> str:
    """What the running pod of this restart attempt, or of any, says of its form."""

    def look() -> str:
        for pod in kubectl.pods(name):
            labels, gone = pod["metadata"]["labels"], pod["metadata"].get("deletionTimestamp")
            if not gone and attempt in (None, int(labels["jobset.sigs.k8s.io/restart-attempt"])):
                log = kubectl.run("logs", pod["metadata"]["name"], "-c", "node", check=False)
                if "form=" in log:
                    return log.strip()
        return ""

    return str(kubectl.wait_for(f"{name} runs (restart {attempt})", look, 120))


def end(kubectl: Kubectl, name: str, code: int) -> None:
    """Tell the program its exit code."""
    pod = next(p for p in kubectl.pods(name) if p["status"]["phase"] == "Running")
    kubectl.run("exec", pod["metadata"]["name"], "-c", "node", "--", "sh", "-c", f"echo {code} > /tmp/go")


def diff(new: Manifest, live: str) -> tuple[int, Manifest]:
    """Exit code and answer of `trainjob runtimes diff - FILE`: what the server has against what would be applied."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(dump(new))
        file.flush()
        command = [TRAINJOB, "runtimes", "diff", "-", file.name, "--format", "json"]
        done = subprocess.run(command, input=live, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def effects(found: Manifest) -> set[str]:
    return {change["effect"] for one in found["runtimes"] for change in one["changes"]}


@pytest.mark.ci
@pytest.mark.trainer
def test_a_changed_failure_policy_needs_a_new_name(kubectl: Kubectl, names: tuple[str, str], seen: Seen) -> None:
    """The server refuses a changed failurePolicy under the same name, as `trainjob runtimes diff` said; an
    unchanged runtime differs in nothing from the live one; under a new name the change is accepted."""
    old, new = names
    kubectl.apply([runtime(old, "1")])
    live = kubectl.run("get", KIND, old, "-o", "yaml")
    assert diff(runtime(old, "1"), live) == (0, {"target": "2.3", "runtimes": [], "effects": {}})
    changed = runtime(old, "1")
    changed["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] += 1
    code, found = diff(changed, live)
    assert (code, effects(found)) == (1, {"new-name"})
    said = kubectl.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=dump_all([changed]), check=False)
    assert "failurePolicy" in said
    assert "Value is immutable" in said
    changed["metadata"]["name"] = new
    assert "serverside-applied" in kubectl.apply([changed])
    assert effects(diff(changed, live)[1]) == {"new-jobs"}
    seen(said.strip()[-110:])


@pytest.mark.full
@pytest.mark.trainer
def test_old_and_new_side_by_side(kubectl: Kubectl, names: tuple[str, str], seen: Seen) -> None:
    """A job of the old and one of the new version run at the same time, each in its own form, and both finish;
    creating a job of the deprecated one warns and says so in `trainjob validate` too."""
    old, new = names
    first = runtime(old, "1")
    kubectl.apply([first])
    kubectl.apply([job("old", old)])
    assert said_form(kubectl, "old") == "form=1"
    second = runtime(new, "2")
    second["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 7
    first["metadata"]["labels"]["trainer.kubeflow.org/support"] = "deprecated"
    first["metadata"]["annotations"]["trainjob.dev/replaced-by"] = new
    kubectl.apply([first, second])
    kubectl.apply([job("new", new)])
    assert said_form(kubectl, "new") == "form=2"
    warned = kubectl.run("create", "-f", "-", stdin=dump(job("late", old, suspend=True)), check=False)
    assert f'"{old}" is deprecated and will be removed' in warned
    command = [TRAINJOB, "validate", "-"]
    both = dump_all([first, job("late", old)])
    told = subprocess.run(command, input=both, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "TJ512" in told.stderr
    assert f'use "{new}"' in told.stderr
    for name in ("old", "new"):
        end(kubectl, name, 0)
        assert kubectl.finished(name) == "Complete"
    restarts = {n: kubectl.get("jobset", n)["spec"]["failurePolicy"]["maxRestarts"] for n in ("old", "new")}
    assert restarts == {"old": 3, "new": 7}
    seen(warned.splitlines()[0][:100])


@pytest.mark.full
@pytest.mark.trainer
def test_jobs_keep_their_form_when_the_runtime_changes_and_goes(
    kubectl: Kubectl, cluster: Kubectl, names: tuple[str, str], seen: Seen
) -> None:
    """In-place edit: a running job restarts and a suspended one starts in the old form, a new one gets the new.
    Deleted at once though in use: the running job restarts and finishes; no update is accepted until it is back."""
    name, _ = names
    kubectl.apply([runtime(name, "1")])
    kubectl.apply([job("running", name), job("waiting", name, suspend=True), job("stranded", name, suspend=True)])
    assert said_form(kubectl, "running") == "form=1"
    for waiting in ("waiting", "stranded"):
        kubectl.wait_for("its JobSet is there", lambda n=waiting: kubectl.list("jobsets") and kubectl.get("jobset", n))

    live = kubectl.run("get", KIND, name, "-o", "yaml")
    assert effects(diff(runtime(name, "2"), live)[1]) == {"restarts-queued-jobs"}
    kubectl.apply([runtime(name, "2")])
    end(kubectl, "running", 1)
    assert said_form(kubectl, "running", attempt=1) == "form=1"
    kubectl.run("patch", "trainjob", "waiting", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    assert said_form(kubectl, "waiting") == "form=1"
    kubectl.apply([job("later", name)])
    assert said_form(kubectl, "later") == "form=2"
    for done in ("waiting", "later"):
        end(kubectl, done, 0)

    cluster.run("delete", KIND, name, "--timeout=20s")
    end(kubectl, "running", 1)
    assert said_form(kubectl, "running", attempt=2) == "form=1"
    resume = ("patch", "trainjob", "stranded", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    refused = kubectl.run(*resume, check=False)
    assert "not found" in refused
    assert "denied the request" in refused
    end(kubectl, "running", 0)
    assert kubectl.finished("running") == "Complete"

    kubectl.apply([runtime(name, "3")])
    kubectl.run(*resume)
    assert said_form(kubectl, "stranded") == "form=1"
    end(kubectl, "stranded", 0)
    assert kubectl.finished("stranded") == "Complete"
    seen(f"2 restarts in the old form; resume without it: {refused.strip()[-60:]}")


@pytest.mark.full
@pytest.mark.queue
def test_an_edit_in_place_restarts_a_queued_job(
    kubectl: Kubectl, cluster: Kubectl, names: tuple[str, str], seen: Seen
) -> None:
    """Kueue compares a running job with the live runtime: after an edit of one variable, the next event of the
    TrainJob stops it, and it starts again from nothing, in the old form. `trainjob runtimes diff` said so."""
    name, _ = names
    api = "kueue.x-k8s.io/v1beta2"
    resources = [{"name": "cpu", "nominalQuota": "1"}, {"name": "memory", "nominalQuota": "2Gi"}]
    flavor = {"name": name, "resources": resources}
    group = {"coveredResources": ["cpu", "memory"], "flavors": [flavor]}
    queue = {"namespaceSelector": {}, "resourceGroups": [group]}
    objects: list[Manifest] = [
        {"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": name}},
        {"apiVersion": api, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": queue},
        {"apiVersion": api, "kind": "LocalQueue", "metadata": {"name": "team"}, "spec": {"clusterQueue": name}},
    ]
    try:
        kubectl.apply(objects)
        kubectl.apply([runtime(name, "1")])
        kubectl.apply([job("queued", name, queue="team")])
        assert said_form(kubectl, "queued") == "form=1"
        first = kubectl.pods("queued")[0]["metadata"]["uid"]

        live = kubectl.run("get", KIND, name, "-o", "yaml")
        assert effects(diff(runtime(name, "2"), live)[1]) == {"restarts-queued-jobs"}
        kubectl.apply([runtime(name, "2")])
        kubectl.run("annotate", "trainjob", "queued", "example.com/any=event")

        def replaced() -> bool:
            pods = kubectl.pods("queued")
            return bool(pods) and all(p["metadata"]["uid"] != first for p in pods)

        kubectl.wait_for("the pod is another one", replaced, 90)
        # The SIGTERM that stops it may count as a disruption, which is a restart of the JobSet too.
        assert said_form(kubectl, "queued", attempt=None) == "form=1"
        events = kubectl.run("get", "events", "-o", "jsonpath={range .items[*]}{.reason} {.message}{'\\n'}{end}")
        told = next(line for line in events.splitlines() if "not matching Workload" in line)
        end(kubectl, "queued", 0)
        assert kubectl.finished("queued") == "Complete"
        seen(told.split(":")[0])
    finally:
        kubectl.run("delete", "trainjobs", "--all", check=False)
        cluster.run("delete", "clusterqueue,resourceflavor", name, "--wait=false", check=False)
