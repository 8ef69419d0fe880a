"""Hypothesis strategies for v1 PyTorchJobs, realistic ones and broken ones."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.property import blocks
from tests.property.blocks import Obj

ROOT = Path(__file__).parents[2]


def _some(items: list[Any], most: int = 3) -> st.SearchStrategy[list[Any]]:
    """Up to `most` different items; often none."""
    return st.lists(st.integers(0, len(items) - 1), max_size=most, unique=True).map(
        lambda chosen: [copy.deepcopy(items[i]) for i in sorted(chosen)]
    )


def _maybe(items: list[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.sampled_from(items).map(copy.deepcopy))


def _merge(parts: list[Obj]) -> Obj:
    """Mappings joined; of one key the last one wins, and labels and annotations are joined."""
    out: Obj = {}
    for part in parts:
        for key, value in part.items():
            both = key in ("labels", "annotations") and key in out
            out[key] = {**out[key], **value} if both else value
    return out


@st.composite
def _containers(draw: st.DrawFn) -> tuple[list[Obj], list[Obj]]:
    """The containers of a pod, the training container somewhere among them, and the volumes."""
    command, args = draw(st.sampled_from(blocks.PROGRAMS))
    main: Obj = {"name": "pytorch", "image": draw(st.sampled_from(["reg.io/team/img:1.2", "img", "img@sha256:ab"]))}
    if command is not None:
        main["command"] = list(command)
    if args is not None:
        main["args"] = list(args)
    env = draw(_some(blocks.ENV, 5))
    if env and draw(st.integers(0, 9)) == 0:
        env.append({"name": env[0]["name"], "value": "set again"})
    if env:
        main["env"] = env
    resources = draw(st.sampled_from(blocks.RESOURCES))
    if resources:
        main["resources"] = copy.deepcopy(resources)
    main |= _merge(draw(_some(blocks.CONTAINER, 2)))
    volumes = draw(_some(blocks.VOLUMES, 3))
    mounts = [m for _, each in volumes for m in each]
    if mounts:
        main["volumeMounts"] = mounts
    sidecars = draw(_some(blocks.SIDECARS, 1)) if draw(st.integers(0, 4)) == 0 else []
    return [*sidecars, main], [volume for volume, _ in volumes]


@st.composite
def _template(draw: st.DrawFn) -> Obj:
    containers, volumes = draw(_containers())
    pod: Obj = {"containers": containers}
    if volumes:
        pod["volumes"] = volumes
    init = draw(_some(blocks.INIT, 2)) if draw(st.integers(0, 3)) == 0 else []
    if init:
        pod["initContainers"] = init
    pod |= _merge(draw(_some(blocks.POD, 3)))
    metadata = _merge(draw(_some(blocks.POD_LABELS, 2)))
    return {"metadata": metadata, "spec": pod} if metadata else {"spec": pod}


_CHANGES = ("nothing", "program", "env", "image", "resources", "labels", "ports", "init", "volume", "all")


@st.composite
def _worker_template(draw: st.DrawFn, master: Obj) -> Obj:
    """The Master's template, or one that differs from it in one way, or another one."""
    change = draw(st.sampled_from(_CHANGES))
    if change == "all":
        return draw(_template())
    out = copy.deepcopy(master)
    main = next(c for c in out["spec"]["containers"] if c["name"] == "pytorch")
    if change == "program":
        command, args = draw(st.sampled_from(blocks.PROGRAMS))
        main.pop("command", None)
        main.pop("args", None)
        main |= {k: list(v) for k, v in (("command", command), ("args", args)) if v is not None}
    elif change == "env":
        main["env"] = [*main.get("env", []), {"name": "ONLY_WORKER", "value": "worker value"}]
    elif change == "image":
        main["image"] = "worker/img:9"
    elif change == "resources":
        main["resources"] = {"limits": {"nvidia.com/gpu": 3}}
    elif change == "labels":
        out.setdefault("metadata", {}).setdefault("labels", {})["only"] = "worker-label"
    elif change == "ports":
        main["ports"] = [*main.get("ports", []), {"name": "worker-port", "containerPort": 7070}]
    elif change == "init":
        out["spec"]["initContainers"] = [*out["spec"].get("initContainers", []), copy.deepcopy(blocks.INIT[2])]
        if len({c["name"] for c in out["spec"]["initContainers"]}) < len(out["spec"]["initContainers"]):
            out["spec"]["initContainers"].pop()
    elif change == "volume":
        out["spec"]["volumes"] = [*out["spec"].get("volumes", []), {"name": "worker-volume", "emptyDir": {}}]
    return out


@st.composite
def jobs(draw: st.DrawFn) -> Obj:
    """A v1 job that the v1 webhook accepts, with its odd sides."""
    which = draw(st.sampled_from(["Master", "Worker", "both", "both"]))
    policy = draw(st.sampled_from([None, "OnFailure", "OnFailure", "Never", "ExitCode", "Always"]))
    specs: Obj = {}
    template = draw(_template())
    for role in ("Master", "Worker"):
        if which not in (role, "both"):
            continue
        count = 1 if role == "Master" else draw(st.sampled_from([1, 1, 2, 3, 12]))
        other = role == "Worker" and which == "both"
        specs[role] = {"replicas": count, "template": draw(_worker_template(template)) if other else template}
        if policy is not None:
            specs[role]["restartPolicy"] = policy
    spec: Obj = {"pytorchReplicaSpecs": specs}
    run_policy = _merge(draw(_some(blocks.RUN_POLICY, 3)))
    if run_policy:
        spec["runPolicy"] = run_policy
    nproc = draw(st.sampled_from([None, None, "auto", "gpu", "cpu", "1", "4"]))
    if nproc is not None:
        spec["nprocPerNode"] = nproc
    if "Worker" in specs and draw(st.integers(0, 3)) == 0:
        spec["elasticPolicy"] = draw(st.sampled_from(blocks.ELASTIC).map(copy.deepcopy))
    metadata = {"generateName": "demo-"} if draw(st.integers(0, 7)) == 0 else {"name": "demo"}
    namespace = draw(st.sampled_from([None, "ns-1"]))
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata |= _merge(draw(_some(blocks.JOB_META, 2)))
    out = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata, "spec": spec}
    status = draw(_maybe(blocks.STATUS)) if draw(st.integers(0, 5)) == 0 else None
    return {**out, "status": status} if status else out


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["{{ .Values.x }}", "${NAME}", "<name>", "$X", "pytorch", "-", "9" * 5000, "1e400", "\x00", "\ud800"]
    ),
    st.sampled_from([[], {}, [None], {"name": None}, [{"name": 3}, "x"]]).map(copy.deepcopy),
)
KEYS = st.one_of(st.sampled_from(["", "<<", "a.b/c", "kind", "name", "0"]), st.text(max_size=4))


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every path of a nested value."""
    out = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            out += places(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            out += places(item, (*path, i))
    return out


@st.composite
def broken(draw: st.DrawFn) -> Any:
    """A job with one to four places deleted, replaced by junk, or with junk put beside them."""
    job: Any = draw(jobs())
    for _ in range(draw(st.integers(1, 4))):
        below = places(job)[1:]
        if not below:
            break
        path = draw(st.sampled_from(below))
        holder = job
        for key in path[:-1]:
            holder = holder[key]
        action = draw(st.sampled_from(["delete", "replace", "replace", "insert"]))
        if action == "delete":
            del holder[path[-1]]
        elif action == "replace":
            holder[path[-1]] = draw(JUNK)
        elif isinstance(holder, dict):
            holder[draw(KEYS)] = draw(JUNK)
        else:
            holder.insert(int(path[-1]), draw(JUNK))
    return job


CASES = [p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("migration/cases/*/before.*"))]


@st.composite
def tear(draw: st.DrawFn, texts: list[str]) -> str:
    """One of the texts with lines removed, doubled, moved, indented or cut."""
    lines = draw(st.sampled_from(texts)).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 5))):
        i = draw(st.integers(0, len(lines) - 1))
        action = draw(st.sampled_from(["remove", "double", "move", "indent", "cut", "tab", "marker"]))
        if action == "remove" and len(lines) > 1:
            del lines[i]
        elif action == "double":
            lines.insert(i, lines[i])
        elif action == "move":
            lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(i))
        elif action == "indent":
            lines[i] = " " * draw(st.integers(1, 4)) + lines[i]
        elif action == "cut":
            lines[i] = lines[i][: draw(st.integers(0, len(lines[i])))]
        elif action == "tab":
            lines[i] = "\t" + lines[i]
        else:
            lines.insert(i, draw(st.sampled_from(["---\n", "...\n", "%YAML 1.1\n", "# x\n", "<<: *a\n", "- \n"])))
    return "".join(lines)


def torn_texts() -> st.SearchStrategy[str]:
    """The text of a public manifest, torn."""
    return tear(CASES)
