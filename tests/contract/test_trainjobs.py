"""The templates in `trainjobs/`: the YAML is what the builder call beside it makes, and is valid."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainjob import emit
from trainjob.builder import MULTI_NODE_REASON, BuildError, train_job
from trainjob.catalog import catalog
from trainjob.emit import TrainJob
from trainjob.findings import Severity
from trainjob.kube.names import QUEUE_LABEL
from trainjob.kube.yaml import load
from trainjob.targets import TARGETS, Target
from trainjob.train.settings import read, settings
from trainjob.validate import check_documents, check_trainjob

ROOT = Path(__file__).resolve().parents[2] / "trainjobs"
# With the reference trainer; the others with a program of the user's own.
REFERENCE = "reference-lora-1gpu"
NAMES = (
    "llama-8b-full-fsdp", "llama-8b-full-fsdp-multinode", "llama-8b-grad-accumulation", "llama-8b-lora-1gpu", REFERENCE,
)  # fmt: skip
OTHERS = ("claims/one-node.yaml", "claims/several-nodes.yaml", "fill-model-cache/fill-model-cache.yaml")
GIB = 2**30

Golden = Callable[[Path | str, str | bytes], None]
each = pytest.mark.parametrize("name", NAMES)


def yaml_file(name: str) -> Path:
    return ROOT / name / f"{name}.yaml"


def builder(name: str) -> Callable[..., TrainJob]:
    """The function `job` of the module beside the YAML."""
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), ROOT / name / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.job  # type: ignore[no-any-return]


def header(name: str) -> str:
    """The opening comment of the YAML file; it is written by hand."""
    out = ""
    for line in yaml_file(name).read_text("utf-8").splitlines(keepends=True) if yaml_file(name).exists() else []:
        if not line.startswith("#"):
            break
        out += line
    return out


def manifest(name: str) -> dict[str, Any]:
    (doc,) = load(yaml_file(name).read_text("utf-8"), name)
    return doc.data  # type: ignore[no-any-return]


def errors(name: str, target: Target) -> list[str]:
    job = manifest(name)
    runtime = emit.for_target(catalog()[job["spec"]["runtimeRef"]["name"]].manifest, target)
    return [f.message for f in check_trainjob(job, target, runtime) if f.severity is not Severity.NOTE]


def test_what_there_is() -> None:
    folders = sorted(p.name for p in ROOT.iterdir() if p.is_dir() and p.name != "__pycache__")
    assert folders == sorted([*NAMES, "claims", "fill-model-cache"])
    files = {p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert files == {"README.md", *OTHERS} | {f"{n}/{n}.{end}" for n in NAMES for end in ("yaml", "py")}
    assert len(NAMES) == 5


@each
def test_yaml_is_what_the_builder_makes(name: str, golden: Golden) -> None:
    golden(yaml_file(name), header(name) + builder(name)().to_yaml())


@each
def test_valid_for_exactly_these_targets(name: str) -> None:
    valid = {target.name for target in TARGETS if not errors(name, target)}
    assert valid == {"2.2", "2.3"}


@each
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_builder_reaches_every_target(name: str, target: Target) -> None:
    """Nothing in a template needs a runtime of its own, on any version."""
    job = builder(name)(target)
    assert job.runtime is None
    assert job.reasons == ()
    assert target.patches in job.manifest["spec"]


@each
def test_the_script_prints_the_yaml(name: str, tmp_path: Path) -> None:
    script = shutil.copy(ROOT / name / f"{name}.py", tmp_path)
    for arguments, target in (([], None), (["rhoai-3.5"], TARGETS[1])):
        done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout == (builder(name)(target) if target else builder(name)()).to_yaml()
        assert done.stderr == ""


@each
def test_header_says_what_a_reader_needs(name: str) -> None:
    text = header(name)
    assert text.startswith(f"# {name}: ")
    for part in ("# Launch it", "# Change: ", "# When not to use it: "):
        assert part in text, part
    assert f"kubectl apply --server-side -f trainjobs/{name}/{name}.yaml" in text
    assert max(map(len, text.splitlines())) <= 110
    runtime = manifest(name)["spec"]["runtimeRef"]["name"]
    assert runtime in text
    for claim in claims(name).values():
        assert claim in text, claim
    others = {word.rstrip(".,;:)/") for word in re.findall(r"llama-8b-[\w-]+", text)}
    assert others <= set(NAMES)


def claims(name: str) -> dict[str, str]:
    """Mount path to claim."""
    (patch,) = manifest(name)["spec"]["runtimePatches"]
    (job,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    volumes = {v["name"]: v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"]}
    (container,) = pod["containers"]
    return {m["mountPath"]: volumes[m["name"]] for m in container["volumeMounts"]}


def ready_claims() -> dict[str, Any]:
    """The claims of trainjobs/claims, by name."""
    docs = [d for file in OTHERS[:2] for d in load((ROOT / file).read_text("utf-8"), file)]
    assert len({d.data["metadata"]["name"] for d in docs}) == len(docs)
    return {d.data["metadata"]["name"]: d for d in docs}


@each
def test_every_claim_is_ready_to_apply_and_fits(name: str) -> None:
    """What a job mounts exists in trainjobs/claims with an access mode that its pods can share."""
    ready = ready_claims()
    assert set(claims(name).values()) <= set(ready)
    (job,) = load(yaml_file(name).read_text("utf-8"), name)
    catalogue = {n: r.manifest for n, r in catalog().items()}
    assert check_documents([job, *ready.values()], TARGETS[-1], catalogue) == []
    for claim in ready.values():
        modes = claim.data["spec"]["accessModes"]
        assert modes == (["ReadWriteMany"] if claim.data["metadata"]["name"].endswith("-rwx") else ["ReadWriteOnce"])


def test_the_job_that_fills_the_cache() -> None:
    """It writes where the runtimes read, into a claim of trainjobs/claims, in a restricted namespace."""
    (doc,) = load((ROOT / OTHERS[2]).read_text("utf-8"))
    pod = doc.data["spec"]["template"]["spec"]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] in ready_claims()
    assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/cache"}]
    env = {e["name"]: e.get("value") for e in container["env"]}
    theirs = {e["name"]: e.get("value") for e in catalog()["torch-lora-1gpu"].container["env"]}
    assert env["HF_HOME"] == theirs["HF_HOME"]
    assert pod["securityContext"] == catalog()["torch-lora-1gpu"].pod["securityContext"]
    assert container["securityContext"] == catalog()["torch-lora-1gpu"].container["securityContext"]


@each
def test_what_every_job_has(name: str) -> None:
    job = manifest(name)
    assert job["metadata"]["name"] == name
    assert "namespace" not in job["metadata"]
    assert job["metadata"]["labels"] == {QUEUE_LABEL: "team-a"}
    trainer = job["spec"]["trainer"]
    env = {e["name"]: e for e in trainer["env"]}
    if name == REFERENCE:
        assert claims(name).keys() == {"/cache", "/checkpoints", "/data"}
        assert trainer["command"] == ["trainjob", "launch", "-m", "trainjob.train"]
        assert env.pop("TRAINJOB_CHECKPOINT_URL")["value"] == f"/checkpoints/{name}"
    else:
        assert claims(name).keys() == {"/cache", "/checkpoints"}
        assert trainer["command"] == ["torchrun", "/workspace/tune.py"]
        assert f"--output=/checkpoints/{name}" in trainer["args"]
    runtime = catalog()[job["spec"]["runtimeRef"]["name"]]
    assert trainer["resourcesPerNode"] == runtime.resources
    token = [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}}}]
    assert list(env.values()) == ([{"name": "HF_HUB_OFFLINE", "value": "1"}] if runtime.gated else token)
    # The claim at /cache is where the runtime puts HF_HOME.
    hf_home = next(e["value"] for e in runtime.container["env"] if e["name"] == "HF_HOME")
    assert hf_home.startswith("/cache/")


def test_the_settings_of_the_reference_job_are_settings() -> None:
    """The arguments are read as the trainer reads them."""
    known = {setting.flag: setting.key for setting in settings()}
    given = (word.partition("=") for word in manifest(REFERENCE)["spec"]["trainer"]["args"])
    config = read(None, "", {}, {known[flag]: value for flag, _, value in given})
    assert (config.lora.rank, config.data.train) == (16, ("/data/*.jsonl",))


def test_only_one_job_is_multi_node_and_it_says_why() -> None:
    reasons = {n: manifest(n)["metadata"].get("annotations", {}).get(MULTI_NODE_REASON) for n in NAMES}
    assert {n for n, reason in reasons.items() if reason} == {"llama-8b-full-fsdp-multinode"}
    assert {n for n in NAMES if manifest(n)["spec"]["trainer"]["numNodes"] > 1} == {"llama-8b-full-fsdp-multinode"}
    with pytest.raises(BuildError, match="say why one node is not enough"):
        train_job(name="x", runtime="torch-fsdp-multinode", image="r/i:1", command=["torchrun", "x.py"], nodes=2)


def test_readme_names_every_job_and_its_runtime() -> None:
    rows = re.findall(r"^\| \[([\w-]+)\]\(([^)]+)\) \| ([\w-]+) \|", (ROOT / "README.md").read_text("utf-8"), re.M)
    assert {name: runtime for name, _, runtime in rows} == {n: manifest(n)["spec"]["runtimeRef"]["name"] for n in NAMES}
    assert all((ROOT / link).is_file() for _, link, _ in rows)


# --- the numbers in the comments, computed again by the formulas of trainjobs/README.md -------------------------

PARAMETERS, LAYERS, WIDTH, VOCABULARY = 8.03e9, 32, 4096, 128_256
ADAPTER = LAYERS * 16 * 81_920
UNIT = 2 * VOCABULARY * WIDTH


def terms(gpus: int, tokens: int, *, lora: bool = False, chunked: bool = False) -> list[float]:
    """States, activations, logits, gathers and fixed, in GiB of one GPU."""
    states = 2 * PARAMETERS + 16 * ADAPTER if lora else 16 * PARAMETERS / gpus
    activations = 2 * tokens * WIDTH * LAYERS + 50 * tokens * WIDTH
    logits = 0 if chunked else 10 * tokens * VOCABULARY
    gathers = 2 * 2 * UNIT + 4 * UNIT if gpus > 1 else 0
    fixed = (2.6 if gpus > 1 else 0.6) * GIB
    return [x / GIB for x in (states, activations, logits, gathers, fixed)]


def rows(name: str, pattern: str) -> list[tuple[str, list[float], bool]]:
    """Lines `#   <pattern>  numbers...` of the header: label, numbers, whether it is this file's."""
    found = []
    for line in header(name).splitlines():
        match = re.fullmatch(rf"#   ({pattern})\s{{2,}}([\d. ]+?)(\s+<- this file)?", line)
        if match:
            found.append((match[1], [float(x) for x in match[2].split()], bool(match[3])))
    return found


def agrees(numbers: list[float], expected: list[float]) -> None:
    assert numbers == pytest.approx([*expected, sum(expected) * 1.1], abs=0.06)


def flag(name: str, key: str) -> int:
    args: list[str] = manifest(name)["spec"]["trainer"]["args"]
    return int(next(a for a in args if a.startswith(f"--{key}=")).partition("=")[2])


def test_memory_of_lora() -> None:
    name = "llama-8b-lora-1gpu"
    found = rows(name, r"\d x \d+(?: --chunked-loss)?")
    assert len(found) == 4
    for label, numbers, mine in found:
        micro, tokens = map(int, label.split()[0:3:2])
        states, activations, logits, _, fixed = terms(1, micro * tokens, lora=True, chunked="chunked" in label)
        agrees(numbers, [states, activations, logits, fixed])
        assert mine == ((micro, tokens) == (flag(name, "micro-batch"), flag(name, "sequence-length")))
    assert found[1][1][-1] < 40


def test_memory_of_full_fine_tuning() -> None:
    name = "llama-8b-full-fsdp"
    found = rows(name, r"\d")
    assert [label for label, _, _ in found] == ["1", "2", "4", "8"]
    tokens = flag(name, "micro-batch") * flag(name, "sequence-length")
    for label, numbers, mine in found:
        agrees(numbers, terms(int(label), tokens))
        assert mine == (int(label) == catalog()[manifest(name)["spec"]["runtimeRef"]["name"]].gpus)
    assert [label for label, numbers, _ in found if numbers[-1] < 80] == ["4", "8"]
    assert sum(terms(8, tokens, chunked=True)) * 1.1 == pytest.approx(31.8, abs=0.06)
    host = [4 * 2 * PARAMETERS / GIB, 12 * PARAMETERS / GIB]
    assert host == pytest.approx([59.8, 89.7], abs=0.06)
    assert max(host) + 32 < 256


def test_memory_of_accumulation() -> None:
    name = "llama-8b-grad-accumulation"
    found = rows(name, r"\d(?: --chunked-loss)?")
    assert len(found) == 3
    for label, numbers, mine in found:
        agrees(numbers, terms(4, int(label[0]) * flag(name, "sequence-length"), chunked="chunked" in label))
        assert mine == ("chunked" in label)


def test_global_batches() -> None:
    """The three ways to 64 sequences a step are the same optimization."""
    for name, gpus in (("llama-8b-grad-accumulation", 4), ("llama-8b-full-fsdp-multinode", 16)):
        factors = (gpus, flag(name, "micro-batch"), flag(name, "accumulation"))
        assert factors[0] * factors[1] * factors[2] == 64
        assert f"#   {factors[0]} x {factors[1]} x {factors[2]} " in header("llama-8b-grad-accumulation")
        assert 64 * flag(name, "sequence-length") == 524_288
    assert sum(terms(8, 2 * 8192)) * 1.1 < 80, "hybrid sharding splits over the eight GPUs of a node"


def test_does_a_second_node_pay() -> None:
    name = "llama-8b-full-fsdp-multinode"
    table = re.findall(r"^#   .*?, ([\d.]+) GB/s\s+([\d.]+)\s+([\d.]+) \+ ([\d.]+)\s+([\d.]+)x$", header(name), re.M)
    assert len(table) == 4
    micro_batch = flag(name, "micro-batch") * flag(name, "sequence-length") / 5762
    for row in table:
        speed, *numbers = map(float, row)
        wire = 2 * PARAMETERS / 1e9 / speed
        one, two = 4 * micro_batch, 2 * micro_batch
        assert numbers == pytest.approx([one, two, wire, one / (two + wire)], abs=0.051)
    hours = 10e9 / (8 * 5762) / 3600
    assert round(hours) == 60
    assert hours / 1.9 < 36
