"""kustomize trees with real engines: build(before), migrated, equals build(after), or the tree is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.migrate.rules.support import v1
from tests.migrate.tree.support import BASE, GPU, JOB, Tree, errors, no_engine
from trainjob.findings import Severity
from trainjob.kube import yaml
from trainjob.kustomize import Engine
from trainjob.migrate.tree.additions import CONFIGURATION, RUNTIMES

pytestmark = pytest.mark.kubectl
SMP = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: tune
spec:
"""
OVERLAY = "resources:\n- ../base\n"


@pytest.fixture
def tree(tmp_path: Path, newest_engine: Engine) -> Tree:
    return Tree(tmp_path, newest_engine).write(BASE)


def inline(patch: str) -> str:
    body = "".join(f"    {line}\n" for line in patch.splitlines())
    return f"patches:\n- patch: |-\n{body}"


def json6902(*operations: str, target: str = "{kind: PyTorchJob, name: tune}") -> str:
    return f"patches:\n- target: {target}\n  patch: |-\n" + "".join(f"    - {o}\n" for o in operations)


REPLICAS = "/spec/pytorchReplicaSpecs/Worker/replicas"
POD = "/spec/pytorchReplicaSpecs/{}/template/spec"
BOTH_IMAGES = [f"{{op: replace, path: {POD.format(r)}/containers/0/image, value: x:2}}" for r in ("Master", "Worker")]
BOTH_ENV = [
    f"{{op: add, path: {POD.format(r)}/containers/0/env, value: [{{name: A, value: b}}]}}" for r in ("Master", "Worker")
]
BOTH_GPUS = [
    f"{{op: replace, path: {POD.format(r)}/containers/0/resources/limits/nvidia.com~1gpu, value: 4}}"
    for r in ("Master", "Worker")
]
DIRS = [f"{{op: add, path: {POD.format(r)}/containers/0/workingDir, value: /w}}" for r in ("Master", "Worker")]

EXACT = {
    "replicas": json6902(f"{{op: replace, path: {REPLICAS}, value: 3}}"),
    "image": json6902(*BOTH_IMAGES),
    "env": json6902(*BOTH_ENV),
    "gpus": json6902(*BOTH_GPUS),
    "one-that-needs-a-runtime": json6902(*DIRS),
    "smp-deadline": inline(f"{SMP}  runPolicy:\n    activeDeadlineSeconds: 60"),
    "smp-queue": inline(SMP.replace("name: tune", "name: tune\n  labels: {kueue.x-k8s.io/queue-name: q}")[:-6]),
    "smp-annotation": inline(SMP.replace("name: tune", "name: tune\n  annotations: {a.example.com/b: c}")[:-6]),
    "smp-restart-never": inline(
        f"{SMP}  pytorchReplicaSpecs:\n    Master: {{restartPolicy: Never}}\n    Worker: {{restartPolicy: Never}}"
    ),
    "by-regex-and-old-field": json6902(
        f"{{op: replace, path: {REPLICAS}, value: 3}}",
        target="{version: v1, group: kubeflow.org, kind: PyTorchJob, name: tune}",
    ).replace("patches:", "patchesJson6902:"),
    "without-kind": json6902("{op: add, path: /metadata/annotations, value: {a: b}}", target="{name: tune}"),
    "images-tag": "images:\n- name: reg.io/img\n  newTag: '2'\n",
    "images-name": "images:\n- {name: reg.io/img, newName: registry.example.com/x/img}\n",
    "prefix": "namePrefix: prod-\n",
    "prefix-and-suffix": "namePrefix: prod-\nnameSuffix: -eu\n",
    "labels": "labels:\n- pairs: {team: nlp}\n",
    "labels-selectors-templates": "labels:\n- pairs: {team: nlp}\n  includeSelectors: true\n",
    "common-labels": "commonLabels: {team: nlp}\ncommonAnnotations: {a: b}\n",
    "namespace": "namespace: prod\n",
    "origin": "buildMetadata: [originAnnotations]\n",
    "all-at-once": "namespace: prod\nnamePrefix: p-\nlabels:\n- pairs: {team: nlp}\nimages:\n- {name: x, newTag: '3'}\n"
    + json6902(*BOTH_IMAGES, *BOTH_ENV, f"{{op: replace, path: {REPLICAS}, value: 3}}"),
    "prefix-and-runtime": "namePrefix: p-\nnamespace: prod\n" + json6902(*DIRS),
    "removed": inline("$patch: delete\napiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: tune}"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_the_overlay_keeps_what_it_renders(tree: Tree, name: str) -> None:
    tree.write({"prod/kustomization.yaml": f"# for production\n{OVERLAY}{EXACT[name]}"}).check("base", "prod")
    text = (tree.root / "prod" / "kustomization.yaml").read_text(encoding="utf-8")
    assert text.startswith(f"# for production\n{OVERLAY}"[:30])
    assert "PyTorchJob" not in text


@pytest.mark.parametrize("name", ["replicas", "images-tag", "prefix", "all-at-once", "prefix-and-runtime", "removed"])
def test_the_oldest_engine_too(tmp_path: Path, oldest_engine: Engine, name: str) -> None:
    tree = Tree(tmp_path, oldest_engine).write(BASE)
    tree.write({"prod/kustomization.yaml": f"{OVERLAY}{EXACT[name]}"}).check("base", "prod")


def test_a_patch_that_is_translated_is_told_with_its_line(tree: Tree) -> None:
    tree.write({"prod/kustomization.yaml": f"{OVERLAY}{EXACT['replicas']}"})
    result = tree.migrate()
    told = [f for f in result.findings if f.code == "TJ920"]
    assert [(f.where.file, f.where.line) for f in told if f.where] == [("prod/kustomization.yaml", 4)]
    assert "/spec/trainer/numNodes" in told[0].message


def test_names_of_files_and_objects_are_stable(tree: Tree) -> None:
    before = {p.relative_to(tree.root) for p in tree.root.rglob("*.*")}
    tree.write({"prod/kustomization.yaml": OVERLAY}).check("base", "prod")
    assert {p.relative_to(tree.root) for p in tree.root.rglob("*.*")} == before | {Path("prod/kustomization.yaml")}
    assert (tree.root / "base/kustomization.yaml").read_text(encoding="utf-8") == BASE["base/kustomization.yaml"]
    assert "name: tune\n" in tree.render("prod")


def test_two_levels_of_overlays(tree: Tree) -> None:
    middle = json6902(f"{{op: replace, path: {REPLICAS}, value: 3}}")
    top = "namePrefix: eu-\n" + json6902(*BOTH_ENV, target="{kind: PyTorchJob, name: .*}")
    tree.write({
        "prod/kustomization.yaml": f"{OVERLAY}{middle}",
        "eu/kustomization.yaml": f"resources:\n- ../prod\n{top}",
    })  # fmt: skip
    tree.check("base", "prod", "eu")
    assert "numNodes: 4" in tree.render("eu")


def test_patch_files_go_and_shared_ones_stay(tree: Tree) -> None:
    deadline = f"{SMP}  runPolicy:\n    activeDeadlineSeconds: 60\n"
    service = "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\nspec:\n  type: NodePort\n"
    tree.write({
        "base/service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\nspec:\n  type: ClusterIP\n",
        "base/kustomization.yaml": "resources: [job.yaml, service.yaml]\n",
        "prod/own.yaml": deadline,
        "prod/mixed.yaml": f"{deadline}---\n# of the service\n{service}",
        "prod/kustomization.yaml": f"{OVERLAY}patchesStrategicMerge:\n- own.yaml\n- mixed.yaml\n",
    })  # fmt: skip
    tree.check("base", "prod")
    assert not (tree.root / "prod/own.yaml").exists()
    assert (tree.root / "prod/mixed.yaml").read_text(encoding="utf-8") == f"---\n# of the service\n{service}"
    assert "type: NodePort" in tree.render("prod")


def test_alike_jobs_share_a_runtime_and_kustomize_still_builds(tree: Tree) -> None:
    """Each file brings its runtime; kustomize refuses an object that stands in two files."""
    alike = yaml.dump(v1({**GPU, "workingDir": "/w"}, metadata={"name": "a"}))
    files = {f"base/{n}.yaml": alike.replace("name: a\n", f"name: {n}\n") for n in ("a", "b")}
    files["base/c.yaml"] = "---\n".join(alike.replace("name: a\n", f"name: {n}\n") for n in ("c", "d"))
    tree.write(files).write({"base/kustomization.yaml": "resources: [a.yaml, b.yaml, c.yaml]\n"}).check("base")
    assert tree.render("base").count("kind: TrainJob\n") == 4


def test_the_runtime_comes_before_the_job(tree: Tree) -> None:
    tree.write({"prod/kustomization.yaml": f"{OVERLAY}namespace: x\n{json6902(*DIRS)}"}).check("prod")
    rendered = tree.render("prod")
    assert rendered.index("kind: TrainingRuntime") < rendered.index("kind: TrainJob\n")
    assert (tree.root / "prod" / RUNTIMES).exists()


def test_images_of_a_later_layer_reach_the_job(tree: Tree) -> None:
    """The configuration is inherited: an overlay that is written later can set the image too."""
    tree.write({"prod/kustomization.yaml": f"{OVERLAY}{EXACT['images-tag']}"}).check("prod")
    assert (tree.root / "prod" / CONFIGURATION).exists()
    tree.write({"later/kustomization.yaml": "resources: [../prod]\nimages: [{name: reg.io/img, newTag: '9'}]\n"})
    assert "image: reg.io/img:9" in tree.render("later")


def test_a_component_that_sets_an_image(tree: Tree) -> None:
    """The image stays in the Component: a later edit there still reaches the job."""
    part = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages:\n- {name: reg.io/img, newTag: '2'}\n"
    tree.write({"part/kustomization.yaml": part, "prod/kustomization.yaml": f"{OVERLAY}components: [../part]\n"})
    tree.check("prod")
    assert "patches" not in (tree.root / "prod/kustomization.yaml").read_text(encoding="utf-8")
    path = tree.root / "part/kustomization.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("'2'", "'7'"), encoding="utf-8")
    assert "image: reg.io/img:7" in tree.render("prod")


def test_one_base_under_two_names(tree: Tree) -> None:
    deadline = inline(SMP.replace("name: tune", "name: b-tune") + "  runPolicy:\n    activeDeadlineSeconds: 60")
    tree.write({
        "a/kustomization.yaml": f"{OVERLAY}namePrefix: a-\n",
        "b/kustomization.yaml": f"{OVERLAY}namePrefix: b-\n",
        "all/kustomization.yml": f"resources: [../a, ../b]\nnamespace: x\n{deadline}",
    })  # fmt: skip
    tree.check("a", "b", "all")
    assert tree.render("all").count("activeDeadlineSeconds: 60") == 1


def test_overlays_without_jobs_are_left_alone(tree: Tree) -> None:
    other = "namePrefix: x-\nresources: [cm.yaml]\nreplacements: []\n"
    tree.write(
        {"other/kustomization.yaml": other, "other/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}
    )
    result = tree.migrate()
    assert (tree.root / "other/kustomization.yaml").read_text(encoding="utf-8") == other
    assert not result.changes


def test_plain_bases_need_no_engine(tree: Tree) -> None:
    result = tree.write({"prod/kustomization.yaml": f"{OVERLAY}namespace: prod\n"}).migrate(engine=no_engine)
    assert result.reached
    assert not errors(result)


# --- what is refused ------------------------------------------------------------------------------

COMPONENT = {
    "part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" + EXACT["replicas"],
    "prod/kustomization.yaml": f"{OVERLAY}components: [../part]\n",
}
REPLACEMENTS = "replacements:\n- source: {kind: PyTorchJob, name: tune}\n  targets: []\n"
MIXED = f"{SMP}  runPolicy: {{}}\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: s}}"
REFUSED: Mapping[str, tuple[Mapping[str, str], str, str]] = {
    "component": (COMPONENT, "part/kustomization.yaml:4", "a Component patches PyTorchJobs"),
    "replacements": (
        {"prod/kustomization.yaml": f"{OVERLAY}{REPLACEMENTS}"},
        "prod/kustomization.yaml:4",
        "replacements reaches into PyTorchJobs",
    ),
    "configurations": (
        {
            "prod/kustomization.yaml": f"{OVERLAY}configurations:\n- c.yaml\n",
            "prod/c.yaml": "images:\n- path: spec/x\n  kind: PyTorchJob\n",
        },
        "prod/kustomization.yaml:4",
        "configurations reaches into PyTorchJobs",
    ),
    "remote": (
        {"prod/kustomization.yaml": f"{OVERLAY}- https://git.example.com/x.git//base?ref=v1\n"},
        "prod/kustomization.yaml:3",
        "is remote and is not fetched",
    ),
    "mixed-inline": (
        {"prod/kustomization.yaml": f"{OVERLAY}{inline(MIXED)}"},
        "prod/kustomization.yaml:4",
        "one inline patch holds PyTorchJobs and other objects",
    ),
    "what-kustomize-refuses": (
        {"prod/kustomization.yaml": f"{OVERLAY}{json6902('{op: remove, path: /spec/nothing}')}"},
        "prod/kustomization.yaml:4",
        "fails",
    ),
    "a-job-that-is-refused-in-the-overlay": (
        {"prod/kustomization.yaml": f"{OVERLAY}{inline(SMP + '  elasticPolicy: {minReplicas: x}')}"},
        "prod/kustomization.yaml:4",
        "must stay as long as",
    ),
    "an-incomplete-base": (
        {
            "base/job.yaml": yaml.dump(v1({"image": None, **GPU}, workers=1, metadata={"name": "tune"})),
            "prod/kustomization.yaml": f"{OVERLAY}{json6902(*(o.replace('replace', 'add') for o in BOTH_IMAGES))}",
        },
        "prod/kustomization.yaml:4",
        "cannot be kept: PyTorchJob tune is there and should not be; TrainJob tune is missing",
    ),
    "flow-style": (
        {"prod/kustomization.yaml": "{resources: [../base], namePrefix: x-}\n"},
        "prod/kustomization.yaml:1",
        "written in braces",
    ),
    "a-config-map-of-the-job": (
        {
            "prod/kustomization.yaml": f"{OVERLAY}configMapGenerator:\n- name: jobs\n  files: [job.yaml]\n",
            "prod/job.yaml": JOB,
        },
        "prod/kustomization.yaml:1",
        "cannot be kept: ConfigMap jobs-",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_file_and_line(tree: Tree, name: str) -> None:
    files, where, said = REFUSED[name]
    result = tree.write(files).migrate(write=False)
    assert result.failed
    assert result.changes == {}
    assert any(e.startswith(f"{where}:") and said in e for e in errors(result)), errors(result)
    assert all(f.fix for f in result.findings if f.severity is Severity.ERROR)
    assert "TJ921" in {f.code for f in result.findings}


def test_without_an_engine_patches_are_refused(tree: Tree) -> None:
    tree.write({"prod/kustomization.yaml": f"{OVERLAY}{EXACT['replicas']}"})
    result = tree.migrate(engine=no_engine)
    assert result.failed
    assert [f.fix for f in result.findings if f.severity is Severity.ERROR] == ["install kubectl"]


def test_a_base_outside_of_the_folder(tmp_path: Path, newest_engine: Engine) -> None:
    Tree(tmp_path, newest_engine).write(BASE)
    inside = Tree(tmp_path / "prod", newest_engine).write(
        {"kustomization.yaml": f"{OVERLAY}namePrefix: x-\n", "j.yaml": JOB}
    )
    inside.write({"kustomization.yaml": f"{OVERLAY}- j.yaml\nnamePrefix: x-\n"})
    result = inside.migrate(write=False)
    assert "lies outside of the folder to migrate" in errors(result)[0]


def test_a_warning_of_the_rendered_job_is_told_once(tree: Tree) -> None:
    tree.write({"prod/kustomization.yaml": f"{OVERLAY}{EXACT['smp-deadline']}"})
    told = [f for f in tree.migrate().findings if f.severity is Severity.WARNING]
    assert [(f.code, f.where.file if f.where else "") for f in told] == [("TJ403", "prod/kustomization.yaml")]
