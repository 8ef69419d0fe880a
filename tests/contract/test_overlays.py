"""The overlay policy (docs/adr/0003), and what our overlays promise beyond it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools import check_overlays as policy
from trainjob.catalog import catalog
from trainjob.emit import for_target
from trainjob.kustomize import BuildError, Engine, build
from trainjob.targets import target

pytestmark = pytest.mark.kubectl

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS = ("dev", "kind", "kind-multi-node", "prod", "prod-multi-node", "rhoai-3.5")
COMPONENTS = (
    "cpu-stand-in", "debug", "fixed-uid", "gpu-tolerations", "kueue", "multi-node", "multi-node-gate",
    "multi-node-gate-all", "nccl-debug", "nccl-gdr", "network-ib", "network-roce", "network-tcp", "registry",
    "trainer-2.0", "trainer-2.1",
)  # fmt: skip
# Kueue objects: applied by themselves, in no overlay of runtimes.
QUEUE_COMPONENTS = ("queues", "queues-team-a", "queues-team-b", "topology")
EXAMPLES = ("examples/multi-node-roce", "examples/queues")
SINGLE, MULTI = 7, 2
COMPAT = {"torch-v1-compat", "torch-v1-compat-multinode"}
SIZES = ("cpu", "memory", "ephemeral-storage")
POD = "/spec/template/spec/replicatedJobs/node/template/spec/template/spec"

Golden = Callable[[Path | str, str | bytes], None]
Objects = dict[str, dict[str, Any]]


def by_name(stream: bytes) -> Objects:
    """The runtimes; what stands beside them is test_gate.py's."""
    return {doc["metadata"]["name"]: doc for doc in policy.objects(stream) if doc["kind"] == policy.KIND}


def pod(doc: dict[str, Any]) -> dict[str, Any]:
    (job,) = doc["spec"]["template"]["spec"]["replicatedJobs"]
    return job["template"]["spec"]["template"]  # type: ignore[no-any-return]


def container(doc: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod(doc)["spec"]["containers"]
    return only  # type: ignore[no-any-return]


def differences(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    a, b = dict(policy.leaves(one)), dict(policy.leaves(other))
    return {path for path in a.keys() | b.keys() if a.get(path, ...) != b.get(path, ...)}


@pytest.fixture(scope="module")
def rendered(newest_engine: Engine) -> dict[str, bytes]:
    return {name: build(ROOT / "overlays" / name, newest_engine) for name in OVERLAYS}


@pytest.fixture(scope="module")
def base(newest_engine: Engine) -> Objects:
    single, multi = (by_name(build(ROOT / f, newest_engine)) for f in ("runtimes", "runtimes/multi-node"))
    assert (len(single), len(multi)) == (SINGLE, MULTI)
    return single | multi


@pytest.fixture
def shop(newest_engine: Engine, tmp_path: Path) -> policy.Workshop:
    return policy.Workshop(policy.Repository(ROOT), tmp_path, newest_engine)


# --- the policy --------------------------------------------------------------------------------------


def test_policy_holds(newest_engine: Engine) -> None:
    result = policy.check(ROOT, newest_engine)
    assert result.broken == ()
    components, overlays = len(COMPONENTS) + len(QUEUE_COMPONENTS), len(OVERLAYS) + len(EXAMPLES)
    texts = [f.read_text("utf-8") for part in ("runtimes", "overlays") for f in (ROOT / part).rglob(policy.FILE)]
    entries = sum(len(re.findall(r"^  - (?:target:|name: )", text, re.M)) for text in texts)
    saw = (result.layers, result.components, result.overlays, result.entries)
    assert saw == (2 + components + overlays, components, overlays, entries), result
    assert entries >= 13


def test_every_folder_is_known() -> None:
    folder = ROOT / "overlays"
    known = {*OVERLAYS, *EXAMPLES}
    found = {f.parent.relative_to(folder).as_posix() for f in folder.rglob(policy.FILE)}
    assert {name for name in found if not name.startswith("components/")} == known
    assert {name.removeprefix("components/") for name in found - known} == {*COMPONENTS, *QUEUE_COMPONENTS}


def test_overlays_only_choose() -> None:
    for layer in policy.Repository(ROOT).overlays:
        if layer.name.removeprefix("overlays/") in EXAMPLES:  # to copy and to change
            continue
        assert layer.data.keys() == {"apiVersion", "kind", "resources", "components"}, layer.name
        assert layer.data["resources"] == ["../../runtimes"], layer.name


# --- the policy finds what it is for: (file, old text, new text, what it says) --------------------------

PROD = "overlays/prod/kustomization.yaml"
LAST = "  - ../components/gpu-tolerations\n"
TOLERATIONS = "overlays/components/gpu-tolerations/kustomization.yaml"
GUARD = "      - op: test\n        path: /spec/template/spec/replicatedJobs/0/name\n        value: node\n"
REGISTRY = "overlays/components/registry/kustomization.yaml"
MIRROR = "    newName: registry.example.com/mirror/pytorch/pytorch\n"
MERGE = "patches: [{target: {kind: ClusterTrainingRuntime}, patch: '{metadata: {labels: {a: b}}}'}]\n"
STATIC_FAULTS = {
    "prefix": (PROD, LAST, LAST + "namePrefix: x-\n", "field namePrefix is not allowed"),
    "namespace": (PROD, LAST, LAST + "namespace: team\n", "field namespace is not allowed"),
    "openapi": (PROD, LAST, LAST + "openapi: {path: x.json}\n", "field openapi is not allowed"),
    "generator": (PROD, LAST, LAST + "configMapGenerator: []\n", "field configMapGenerator is not allowed"),
    "selectors": (PROD, LAST, LAST + "labels: [{pairs: {a: b}, includeSelectors: true}]\n", "may only"),
    "merge": (PROD, LAST, LAST + MERGE, "is a strategic merge"),
    "patch file": (PROD, LAST, LAST + "patches: [{path: x.yaml}]\n", "a target and an inline patch"),
    "component head": (TOLERATIONS, "v1alpha1\n", "v1beta1\n", "does not belong to kind Component"),
    "other kind": (TOLERATIONS, "kind: ClusterTrainingRuntime", "kind: TrainJob", "must target kind"),
    "no guard": (TOLERATIONS, GUARD, "", "does not begin with a test"),
    "guard elsewhere": (TOLERATIONS, "replicatedJobs/0/name", "replicatedJobs", "without a test of its name"),
    "tag": (REGISTRY, MIRROR, MIRROR + '    newTag: "1"\n', "sets newTag"),
    "image twice": (REGISTRY, MIRROR, MIRROR + "  - {name: pytorch/pytorch, newName: x}\n", "listed twice"),
    "foreign digest": (
        "overlays/components/cpu-stand-in/kustomization.yaml", '    newTag: "1"\n', "", "needs a newTag",
    ),
    "order": (
        "overlays/prod-multi-node/kustomization.yaml",
        f"  - ../components/multi-node-gate\n{LAST}", f"{LAST}  - ../components/multi-node-gate\n",
        "../components/multi-node-gate must come before ../components/gpu-tolerations",
    ),
    "gate": (PROD, "  - ../../runtimes\n", "  - ../../runtimes\n  - ../../runtimes/multi-node\n", "may list"),
    "no component": (PROD, LAST, "  - ../dev\n", "../dev is no component"),
    "not listed": ("runtimes/kustomization.yaml", "  - torch-v1-compat.yaml\n", "", "resources must be"),
}  # fmt: skip


def plant(shop: policy.Workshop, file: str, old: str, new: str) -> None:
    path = shop.root / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize("fault", STATIC_FAULTS)
def test_policy_reports(shop: policy.Workshop, fault: str) -> None:
    file, old, new, text = STATIC_FAULTS[fault]
    plant(shop, file, old, new)
    broken = list(policy.static(policy.Repository(shop.root)))
    assert any(text in line for line in broken), broken


def test_policy_reports_what_changes_nothing(shop: policy.Workshop, newest_engine: Engine) -> None:
    """kustomize itself ends with exit code 0 and an empty stderr for each of these."""
    plant(shop, TOLERATIONS, "accelerator=nvidia", "accelerator=nvida")
    plant(shop, REGISTRY, "name: pytorch/pytorch", "name: pytorch/pytroch")
    plant(shop, PROD, LAST, LAST + "  - ../components/kueue\n")
    repo = policy.Repository(shop.root)
    (shop.root / "copy").mkdir()
    broken = list(policy.effects(repo, policy.Workshop(repo, shop.root / "copy", newest_engine)))
    for text in ("gpu-tolerations: patches[0]", "registry: images[0]", "overlays/prod: components[2]"):
        assert any(text in line and "changes nothing" in line for line in broken), (text, broken)


def test_policy_reports_what_comes_out(shop: policy.Workshop, newest_engine: Engine) -> None:
    """A TrainJob, a lost list (kustomize: exit code 0) and a guard that fails."""
    plant(shop, PROD, "  - ../../runtimes\n", "  - ../../runtimes\n  - job\n")
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "j"}}
    shop.write("overlays/prod/job", {"resources": ["j.yaml"]})
    (shop.root / "overlays/prod/job/j.yaml").write_text(str(job), encoding="utf-8")
    wreck = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": policy.KIND,
        "metadata": {"name": "torch-fsdp-1gpu"},
        "spec": {"template": {"spec": {"replicatedJobs": [{"name": "node"}]}}},
    }
    dev = policy.Repository(shop.root).at(shop.root / "overlays/dev")
    assert dev is not None
    shop.write("overlays/dev", dev.data | {"patches": [{"patch": str(wreck)}]})
    plant(shop, "overlays/components/trainer-2.1/kustomization.yaml", "value: {}", "value: {a: b}")
    repo = policy.Repository(shop.root)
    (shop.root / "copy").mkdir()
    broken = list(policy.outcomes(repo, policy.Workshop(repo, shop.root / "copy", newest_engine)))
    for text in (
        "overlays/prod: renders TrainJob j",
        f"overlays/dev: torch-fsdp-1gpu lost {POD}/containers/node/image",
        "overlays/components/trainer-2.1': testing value /spec/mlPolicy/torch failed",
    ):
        assert any(text in line for line in broken), (text, broken)


def test_a_warning_of_the_engine_is_an_error(shop: policy.Workshop) -> None:
    plant(shop, PROD, LAST, LAST + "commonLabels: {a: b}\n")
    with pytest.raises(BuildError, match="commonLabels"):
        shop.render("overlays/prod")


# --- what the overlays render ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", OVERLAYS)
def test_golden(rendered: dict[str, bytes], golden: Golden, name: str) -> None:
    golden(f"overlays/{name}.yaml", rendered[name])


@pytest.mark.parametrize("name", OVERLAYS)
def test_oldest_and_newest_engine_agree(
    rendered: dict[str, bytes], oldest_engine: Engine, newest_engine: Engine, name: str
) -> None:
    assert oldest_engine.version != newest_engine.version
    assert build(ROOT / "overlays" / name, oldest_engine) == rendered[name]


def test_prod_holds_no_multi_node_runtime(rendered: dict[str, bytes]) -> None:
    counts = {}
    for name in OVERLAYS:
        labels = [doc["metadata"]["labels"] for doc in by_name(rendered[name]).values()]
        gated = [x for x in labels if x["trainjob.dev/maturity"] == "gated"]
        assert gated == [x for x in labels if x["trainjob.dev/topology"] == "multi-node"]
        counts[name] = (len(labels), len(gated))
    with_gate = (SINGLE + MULTI, MULTI)
    assert counts == {
        name: with_gate if name in ("prod-multi-node", "kind-multi-node") else (SINGLE, 0) for name in OVERLAYS
    }


@pytest.mark.parametrize(
    ("name", "original", "count"),
    [("kind", "prod", SINGLE), ("kind-multi-node", "prod-multi-node", SINGLE + MULTI)],
)
def test_kind_differs_in_image_and_sizes_only(rendered: dict[str, bytes], name: str, original: str, count: int) -> None:
    ours, theirs = by_name(rendered[name]), by_name(rendered[original])
    assert ours.keys() == theirs.keys()
    assert len(ours) == count
    node = f"{POD}/containers/node"
    sizes = {f"{node}/resources/{part}/{size}" for part in ("requests", "limits") for size in SIZES}
    sizes.add(f"{POD}/volumes/runtime-shm/emptyDir/sizeLimit")
    for runtime, doc in ours.items():
        found = differences(doc, theirs[runtime])
        # A size that happens to be the same on both is no difference.
        expected = set() if runtime in COMPAT else sizes - {f"{node}/resources/limits/cpu"}
        assert expected | {f"{node}/image"} <= found <= sizes | {f"{node}/image"}, runtime


def test_gpu_pods_tolerate_the_gpu_taint(rendered: dict[str, bytes]) -> None:
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists"}
    tolerant = 0
    for name in OVERLAYS:
        for doc in by_name(rendered[name]).values():
            gpu = doc["metadata"]["labels"]["trainjob.dev/accelerator"] == "nvidia"
            assert pod(doc)["spec"].get("tolerations") == ([toleration] if gpu else None)
            tolerant += gpu
    assert tolerant == 6 * 5 + 2


def test_rhoai_has_the_shape_of_trainer_2_1(rendered: dict[str, bytes]) -> None:
    ours, prod = by_name(rendered["rhoai-3.5"]), by_name(rendered["prod"])
    for name, doc in ours.items():
        assert doc["spec"]["mlPolicy"]["torch"] == {"numProcPerNode": "auto"}
        changed = {"/spec/mlPolicy/torch", "/spec/mlPolicy/torch/numProcPerNode"}
        assert differences(doc, prod[name]) == changed
    assert all(doc["spec"]["mlPolicy"]["torch"] == {} for doc in prod.values())


def test_trainer_2_0_is_what_the_package_makes_of_a_runtime(shop: policy.Workshop) -> None:
    """The component and `emit.for_target` are two ways to one shape."""
    for name, doc in by_name(shop.render(shop.probe("trainer-2.1", "trainer-2.0"))).items():
        assert doc == for_target(catalog()[name].manifest, target("2.0")), name


# --- components that no overlay of ours chooses -----------------------------------------------------------


def test_registry_rewrites_every_image(shop: policy.Workshop) -> None:
    docs = by_name(shop.render(shop.probe("gpu-tolerations", "registry")))
    assert len(docs) == SINGLE + MULTI
    for doc in docs.values():
        assert container(doc)["image"].startswith("registry.example.com/mirror/pytorch/pytorch:2.")


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_registry_can_pin_by_digest(
    shop: policy.Workshop, oldest_engine: Engine, newest_engine: Engine, which: str
) -> None:
    """The form that runtimes/README.md shows."""
    digest = "sha256:" + "0" * 64
    tag = "2.13.0-cuda13.0-cudnn9-runtime"
    plant(shop, REGISTRY, MIRROR, f"{MIRROR}    newTag: {tag}\n    digest: {digest}\n")
    assert list(policy.static(policy.Repository(shop.root))) == []
    shop.engine = oldest_engine if which == "oldest" else newest_engine
    for doc in by_name(shop.render(shop.probe("registry"))).values():
        assert container(doc)["image"] == f"registry.example.com/mirror/pytorch/pytorch:{tag}@{digest}"


def test_fixed_uid_leaves_v1_jobs_alone(shop: policy.Workshop, base: Objects) -> None:
    for name, doc in by_name(shop.render(shop.probe("fixed-uid"))).items():
        if name in COMPAT:
            assert doc == base[name]
        else:
            context = pod(doc)["spec"]["securityContext"]
            assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (1000, 1000, 1000)


def test_kueue_touches_multi_node_fsdp_only(shop: policy.Workshop, base: Objects) -> None:
    docs = by_name(shop.render(shop.probe("kueue")))
    changed = {name for name, doc in docs.items() if doc != base[name]}
    assert changed == {"torch-fsdp-multinode"}
    annotations = pod(docs["torch-fsdp-multinode"])["metadata"]["annotations"]
    assert annotations["kueue.x-k8s.io/podset-preferred-topology"] == "kubernetes.io/hostname"


def test_no_component_sets_a_queue() -> None:
    for file in (ROOT / "overlays").rglob("kustomization.yaml"):
        lines = [x for x in file.read_text("utf-8").splitlines() if not x.lstrip().startswith("#")]
        assert not any("queue-name" in line for line in lines), file


def test_components_change_nothing_but_the_image_of_v1_runtimes(shop: policy.Workshop, base: Objects) -> None:
    modifiers = [c for c in COMPONENTS if c not in ("multi-node", "registry", "trainer-2.1")]
    for name in modifiers:
        docs = by_name(shop.render(shop.probe(name)))
        for runtime in COMPAT:
            container(docs[runtime])["image"] = container(base[runtime])["image"]
            assert docs[runtime] == base[runtime], name


def test_an_overlay_of_every_modifier_renders_alike(shop: policy.Workshop, oldest_engine: Engine) -> None:
    name = shop.probe("trainer-2.1", "gpu-tolerations", "fixed-uid", "kueue", "debug", "registry")
    newest = shop.render(name)
    assert len(policy.objects(newest)) == SINGLE + MULTI
    shop.engine = oldest_engine
    assert shop.render(name) == newest
