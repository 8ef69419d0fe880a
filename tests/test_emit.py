"""The only place that writes TrainJobs: the shape for each target, and the runtimes that it derives."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trainjob import emit
from trainjob.catalog import V1_COMPAT, V1_COMPAT_MULTINODE, catalog
from trainjob.emit import build, derive_runtime, for_target, patchable, runtime_reasons
from trainjob.intent import Failure, Lifetime, PodParts, Program, Role, TrainingIntent
from trainjob.kube import yaml
from trainjob.targets import DEFAULT, TARGETS, Target, target
from trainjob.validate import check_runtime, check_trainjob

RUNTIME = catalog()[V1_COMPAT]
every_target = pytest.mark.parametrize("each", TARGETS, ids=str)


def intent(
    pod: PodParts | None = None, *, program: Program | None = None, pods: int = 1, **more: Any
) -> TrainingIntent:
    role = Role(pods, program or Program("img:1"), pod or PodParts())
    return TrainingIntent(**{"role": role, "name": "demo", **more})


def entry(job: emit.TrainJob, each: Target) -> Any:
    (patch,) = job.manifest["spec"][each.patches]
    return patch


# --- the TrainJob ----------------------------------------------------------------------------------


@every_target
def test_the_smallest_job(each: Target) -> None:
    """`trainer` is always there, with the number of nodes; nothing else that says nothing."""
    job = build(intent(), RUNTIME, each)
    assert job.manifest == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "demo"},
        "spec": {
            "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": V1_COMPAT},
            "trainer": {"numNodes": 1, "image": "img:1"},
        },
    }
    assert (job.runtime, job.reasons) == (None, ())


def test_the_whole_trainer() -> None:
    """Program and resources as given, with the number of processes."""
    program = Program("i", ("a", ""), ("b",), ({"name": "A", "value": "1"},), {"limits": {"cpu": "1"}})
    job = build(intent(program=program, procs_per_node=4, pods=3), RUNTIME)
    assert job.manifest["spec"]["trainer"] == {
        "numNodes": 3,
        "numProcPerNode": 4,
        "image": "i",
        "command": ["a", ""],
        "args": ["b"],
        "env": [{"name": "A", "value": "1"}],
        "resourcesPerNode": {"limits": {"cpu": "1"}},
    }


def test_metadata_and_lifetime() -> None:
    """Name or generateName, namespace, labels, annotations, suspend, managedBy, deadline."""
    life = Lifetime(active_deadline_seconds=9, suspend=True, managed_by="kueue.x-k8s.io/multikueue")
    more = {"namespace": "ns", "labels": {"a": ""}, "annotations": {"c": "d"}, "lifetime": life}
    job = build(intent(generate_name="g-", **{**more, "name": None}), RUNTIME)
    assert job.manifest["metadata"] == {
        "generateName": "g-", "namespace": "ns", "labels": {"a": ""}, "annotations": {"c": "d"},
    }  # fmt: skip
    spec = job.manifest["spec"]
    assert (spec["suspend"], spec["managedBy"], spec["activeDeadlineSeconds"]) == (True, life.managed_by, 9)
    assert "metadata" not in build(intent(name=None), RUNTIME).manifest


VOLUME = {"name": "v", "emptyDir": {}}
MOUNT = {"name": "v", "mountPath": "/v", "readOnly": False}
PATCHED = PodParts(
    spec={"volumes": [VOLUME], "nodeSelector": {"a": ""}, "serviceAccountName": "sa"},
    container={"volumeMounts": [MOUNT]},
)


@every_target
def test_a_patch_in_each_targets_words(each: Target) -> None:
    """podSpecOverrides, podTemplateOverrides or runtimePatches; `readOnly: false` is left out, `emptyDir: {}` stays."""
    job = build(intent(PATCHED), RUNTIME, each, manager="me/x")
    assert job.runtime is None
    spec = {
        "volumes": [VOLUME],
        "nodeSelector": {"a": ""},
        "serviceAccountName": "sa",
        "containers": [{"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
    }
    found = entry(job, each)
    if each.patches == "podSpecOverrides":
        assert found == {"targetJobs": [{"name": "node"}], **spec}
    elif each.patches == "podTemplateOverrides":
        assert found == {"targetJobs": [{"name": "node"}], "spec": spec}
    else:
        assert found["manager"] == "me/x"
        (replicated,) = found["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        assert replicated == {"name": "node", "template": {"spec": {"template": {"spec": spec}}}}
    assert check_trainjob(job.manifest, each, for_target(RUNTIME.manifest, each)) == []


@every_target
def test_pod_metadata_is_patched_or_derived(each: Target) -> None:
    """Trainer 2.0 has no place for it."""
    job = build(intent(PodParts({"l": "1"}, {"a": "2"})), RUNTIME, each)
    metadata = {"labels": {"l": "1"}, "annotations": {"a": "2"}}
    if each.patch_metadata:
        assert job.runtime is None
        assert str(metadata) in str(entry(job, each))
    else:
        assert job.runtime is not None
        assert each.patches not in job.manifest["spec"]


def test_a_container_port_alone_is_no_patch() -> None:
    """It informs only."""
    assert build(intent(PodParts(container={"ports": [{"containerPort": 1}]})), RUNTIME).manifest["spec"].keys() == {
        "runtimeRef", "trainer",
    }  # fmt: skip


def test_objects_are_written_in_order() -> None:
    """The runtime first; plain data that can be edited."""
    job = build(intent(PodParts(container={"workingDir": "/w"})), RUNTIME)
    assert [d.data["kind"] for d in yaml.load(job.to_yaml())] == ["TrainingRuntime", "TrainJob"]
    assert [o["kind"] for o in job.objects()] == ["TrainingRuntime", "TrainJob"]
    data = job.to_dict()
    data["metadata"]["name"] = "other"
    assert job.manifest["metadata"]["name"] == "demo"
    assert len(build(intent(), RUNTIME).objects()) == 1


def test_the_intent_is_not_changed_and_not_shared() -> None:
    """Two builds of one intent are equal, and edits of one do not reach the other."""
    given = intent(
        PATCHED, program=Program("i", env=({"name": "A", "value": "1"},), resources={"limits": {"cpu": "1"}})
    )
    before = copy.deepcopy(given)
    one, two = build(given, RUNTIME).to_dict(), build(given, RUNTIME).to_dict()
    assert one == two
    one["spec"]["trainer"]["env"].append("x")
    one["spec"]["runtimePatches"][0]["trainingRuntimeSpec"].clear()
    assert given == before
    assert build(given, RUNTIME).to_dict() == two


# --- what needs a runtime ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (intent(PATCHED), []),
        (intent(PodParts(spec={"hostNetwork": True, "volumes": []})), ["hostNetwork"]),
        (intent(PodParts(container={"workingDir": "/w", "tty": True})), ["workingDir", "tty"]),
        (intent(PodParts(container={"ports": [{"containerPort": 1}]})), []),
        (intent(PodParts(container={"ports": [{"containerPort": 1, "hostPort": 1}]})), ["ports"]),
        (intent(PodParts(container={"volumeMounts": [MOUNT, {"name": "v", "mountPath": "/w"}]})), ["volumeMounts"]),
        (
            intent(PodParts(init_containers=({"name": "i"},), sidecars=({"name": "s"},))),
            ["initContainers", "containers"],
        ),
        (intent(program=Program("i", resources={"claims": [{"name": "c"}]})), ["resources.claims"]),
        (intent(lifetime=Lifetime(Failure.NEVER)), ["restartPolicy"]),
        (intent(lifetime=Lifetime(Failure.EXIT_CODE, 3)), ["restartPolicy", "backoffLimit"]),
        (intent(lifetime=Lifetime(backoff_limit=0)), ["backoffLimit"]),
        (intent(lifetime=Lifetime(active_deadline_seconds=1, suspend=True)), []),
        (intent(worker=Role(2, Program("w"))), ["two roles"]),
    ],
)
def test_reasons_for_a_runtime(given: TrainingIntent, fields: list[str]) -> None:
    """The field and why; nothing where a TrainJob can say it."""
    reasons = list(runtime_reasons(given, DEFAULT))
    assert [field for field, _ in reasons] == fields
    assert all(why for _, why in reasons)
    assert (build(given, RUNTIME).runtime is not None) is bool(fields)


@pytest.mark.parametrize(
    ("name", "pod", "container"),
    [
        (
            "2.0",
            {"affinity", "imagePullSecrets", "securityContext", "terminationGracePeriodSeconds"},
            {"securityContext"},
        ),
        ("2.1", {"securityContext", "terminationGracePeriodSeconds"}, {"securityContext"}),
        ("2.2", {"terminationGracePeriodSeconds"}, set()),
        ("2.3", set(), set()),
    ],
)
def test_what_older_targets_cannot_patch(name: str, pod: set[str], container: set[str]) -> None:
    """Counted from the newest."""
    newest, older = patchable(DEFAULT), patchable(target(name))
    assert (newest[0] - older[0], newest[1] - older[1]) == (pod, container)


# --- derived runtimes ------------------------------------------------------------------------------


def job_of(runtime: Any, name: str = "node") -> Any:
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return next(j for j in jobs if j["name"] == name)["template"]["spec"]


def test_the_same_shape_is_the_same_runtime() -> None:
    """300 alike jobs share one: name, program, env and number of nodes do not matter, what it carries does."""
    parts = PodParts(container={"workingDir": "/w"})
    one = derive_runtime(intent(parts), RUNTIME)
    same = intent(parts, name="other", program=Program("img:1", ("x",), env=({"name": "A", "value": "1"},)), pods=1)
    assert derive_runtime(same, RUNTIME) == one
    assert yaml.dump(derive_runtime(intent(parts), RUNTIME)) == yaml.dump(one)
    others = [
        derive_runtime(intent(PodParts(container={"workingDir": "/x"})), RUNTIME),
        derive_runtime(intent(parts, program=Program("img:2")), RUNTIME),
        derive_runtime(intent(parts), RUNTIME, target("2.1")),
        derive_runtime(intent(parts), RUNTIME, target("2.2")),
    ]
    assert len({o["metadata"]["name"] for o in [one, *others]}) == 5


def test_one_and_several_nodes_share_a_runtime() -> None:
    """It carries no number of nodes of its own, and is called the same."""
    parts = PodParts(container={"workingDir": "/w"})
    assert (
        derive_runtime(intent(parts), RUNTIME)["spec"]
        == derive_runtime(intent(parts, pods=4), catalog()[V1_COMPAT_MULTINODE])["spec"]
    )


def test_metadata_of_a_derived_runtime() -> None:
    """Namespaced like the job, with the framework label that the SDK needs, and where it comes from."""
    made = derive_runtime(intent(PodParts(), namespace="ns"), RUNTIME)
    assert (made["apiVersion"], made["kind"]) == ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime")
    metadata = made["metadata"]
    assert metadata["namespace"] == "ns"
    assert metadata["labels"] == {"trainer.kubeflow.org/framework": "torch"}
    assert metadata["annotations"] == {"trainjob.dev/derived-from": V1_COMPAT}
    assert metadata["name"].startswith("torch-v1-compat-")
    assert "namespace" not in derive_runtime(intent(), RUNTIME)["metadata"]


def test_everything_it_must_carry() -> None:
    """Container fields, pod fields, init containers, sidecars, metadata; the base's own env and labels stay."""
    parts = PodParts(
        {"l": "1"}, {"a": "2"}, {"hostIPC": True, "volumes": [VOLUME]}, {"workingDir": "/w", "volumeMounts": [MOUNT]},
        ({"name": "i", "image": "i"},), ({"name": "s", "image": "s"},),
    )  # fmt: skip
    made = derive_runtime(intent(parts), RUNTIME)
    pod = job_of(made)["template"]["spec"]
    node, sidecar = pod["containers"]
    assert (node["image"], node["workingDir"], node["volumeMounts"]) == ("img:1", "/w", [MOUNT])
    assert node["env"] == RUNTIME.container["env"]
    assert (sidecar, pod["initContainers"]) == (parts.sidecars[0], [parts.init_containers[0]])
    assert (pod["hostIPC"], pod["volumes"]) == (True, [VOLUME])
    assert job_of(made)["template"]["metadata"] == {"labels": {"l": "1"}, "annotations": {"a": "2"}}
    (replicated,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    assert replicated["template"]["metadata"]["labels"] == {emit.STEP_LABEL: "trainer"}
    assert [f for f in check_runtime(made, DEFAULT) if f.severity == "error"] == []


def test_lists_are_merged_by_their_keys() -> None:
    """A volume or mount of the job replaces that of the base with the same key, and stands beside the others."""
    base = catalog()["torch-fsdp-1gpu"]
    names = [v["name"] for v in base.pod["volumes"]]
    parts = PodParts(
        spec={
            "volumes": [{"name": names[0], "hostPath": {"path": "/x"}}, {"name": "own", "emptyDir": {}}],
            "hostIPC": True,
        },
        container={"volumeMounts": [{"name": "own", "mountPath": "/dev/shm"}]},
    )
    pod = job_of(derive_runtime(intent(parts), base))["template"]["spec"]
    assert [v["name"] for v in pod["volumes"]] == [*names[1:], names[0], "own"]
    paths = [m["mountPath"] for m in pod["containers"][0]["volumeMounts"]]
    assert len(paths) == len(set(paths))
    assert pod["containers"][0]["volumeMounts"][-1] == {"name": "own", "mountPath": "/dev/shm"}


@every_target
def test_the_policy_of_each_target(each: Target) -> None:
    """`numProcPerNode: auto` up to 2.1, nothing from 2.2 on, envInjection where it exists."""
    made = derive_runtime(intent(env_targets=("s",)), RUNTIME, each)
    torch: dict[str, Any] = {"numProcPerNode": "auto"} if each.torch_nproc_in_runtime else {}
    if each.env_injection:
        torch["envInjection"] = {"targets": [{"jobName": "node", "containerNames": ["s"]}]}
    assert made["spec"]["mlPolicy"] == {"numNodes": 1, "torch": torch}


@every_target
def test_a_deadline_stands_in_one_place(each: Target) -> None:
    """In the TrainJob where it has the field, else in every Job of the runtime."""
    life = Lifetime(Failure.NEVER, active_deadline_seconds=60)
    job = build(intent(lifetime=life, worker=Role(2, Program("w"))), RUNTIME, each)
    assert ("activeDeadlineSeconds" in job.manifest["spec"]) is each.active_deadline
    for name in ("node", "worker"):
        assert job_of(job.runtime, name).get("activeDeadlineSeconds") == (None if each.active_deadline else 60)


@pytest.mark.parametrize(
    ("life", "policy", "limit", "codes"),
    [
        (Lifetime(Failure.NEVER, 9), "Never", 0, False),
        (Lifetime(Failure.EXIT_CODE), "Never", emit.LARGE_BACKOFF, True),
        (Lifetime(Failure.EXIT_CODE, 4), "Never", 4, True),
        (Lifetime(Failure.RUNTIME, 2), "OnFailure", 2, False),
    ],
)
def test_how_it_ends(life: Lifetime, policy: str, limit: int, codes: bool) -> None:
    """Restart policy, number of retries, and the exit codes that end the job."""
    batch = job_of(derive_runtime(intent(lifetime=life), RUNTIME))
    assert (batch["template"]["spec"]["restartPolicy"], batch["backoffLimit"]) == (policy, limit)
    assert ("podFailurePolicy" in batch) is codes


def test_two_roles() -> None:
    """Two jobs with whole programs; only rank 0 carries the trainer label and decides success."""
    first = Role(1, Program("m", ("a",), ("b",), ({"name": "A", "value": "1"},), {"limits": {"cpu": "1"}}))
    given = TrainingIntent(first, name="demo", worker=Role(3, Program("w"), PodParts({"l": "w"})))
    assert given.nodes == 4
    job = build(given, RUNTIME)
    assert job.manifest["spec"]["trainer"] == {"numNodes": 1}
    assert job.runtime is not None
    node, worker = job.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert list(worker) == ["name", "replicas", "template"]
    assert (worker["name"], worker["replicas"]) == ("worker", 3)
    assert node["template"]["metadata"]["labels"] == {emit.STEP_LABEL: "trainer"}
    assert "metadata" not in worker["template"]
    assert job_of(job.runtime)["template"]["spec"]["containers"] == [
        {
            "name": "node",
            "image": "m",
            "command": ["a"],
            "args": ["b"],
            "env": [{"name": "A", "value": "1"}],
            "resources": {"limits": {"cpu": "1"}},
        }
    ]
    assert job_of(job.runtime, "worker")["template"] == {
        "metadata": {"labels": {"l": "w"}},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "node", "image": "w"}]},
    }


@every_target
@pytest.mark.parametrize("name", list(catalog()))
def test_catalogue_runtimes_in_the_targets_shape(name: str, each: Target) -> None:
    """The torch policy differs, and in 2.0 the restart rules; what has neither is left alone."""
    manifest = catalog()[name].manifest
    made = for_target(manifest, each)
    torch = made["spec"]["mlPolicy"]["torch"]
    assert torch == ({"numProcPerNode": "auto"} if each.torch_nproc_in_runtime else {})
    if each.failure_message_patterns or catalog()[name].purpose == "v1-compat":
        assert {**made["spec"], "mlPolicy": 0} == {**manifest["spec"], "mlPolicy": 0}
    else:
        jobset = made["spec"]["template"]["spec"]
        assert [rule["name"] for rule in jobset["failurePolicy"]["rules"]] == ["onDisruption"]
        pods = jobset["replicatedJobs"][0]["template"]["spec"]["podFailurePolicy"]["rules"]
        assert [rule.get("onExitCodes", {}).get("values") for rule in pods] == [None, [143]]
        assert check_runtime(made, each) == []
    plain = {"spec": {"mlPolicy": {"numNodes": 2}}}
    assert for_target(plain, each) is plain
