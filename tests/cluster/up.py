"""Brings a cluster up, or back, or down: the order of things."""

from __future__ import annotations

import json
import shutil
from typing import Any

from . import container, engine, images, kind, objectstore, stack, storage, trainimage, versions
from .context import Context
from .host import require_disk, require_port
from .problems import ClusterError
from .versions import Trainer


def up(ctx: Context, wanted: str, trainer: Trainer, workers: int, gpus: int, api_port: int) -> None:
    """Makes the cluster ready. What is there and right stays; a second call does nothing but look."""
    started = engine.ensure(ctx)
    try:
        engine.require_capable(ctx)
        _refuse_foreign(ctx)
        _refuse_other(ctx, wanted, trainer)
        container.clear_left_overs(ctx)
        source = images.choose(ctx, wanted)
        kubectl = source.kubectl()
        if _is_made(ctx):
            if any(not node.running for node in kind.nodes(ctx)):
                with ctx.progress.step("start the nodes again"):
                    kind.start(ctx)
        else:
            _create(ctx, source, trainer, workers, api_port)
        if not ctx.kubeconfig.is_file():
            kind.write_kubeconfig(ctx)
        with ctx.progress.step("nodes ready"):
            if not source.own_network:
                kind.connect(ctx, kubectl)
            kind.wait_ready(ctx, kubectl)
            kind.fake_gpus(ctx, kubectl, gpus)
        _note_made(ctx)
        storage.share(ctx, kubectl)
        stack.install(ctx, source, kubectl, trainer)
    except BaseException:
        _leave_nothing(ctx, started)
        raise


def down(ctx: Context) -> bool:
    """Deletes the cluster, and stops the engine if this harness started it. False when there was none."""
    if not engine.running(ctx):
        if not ctx.state:
            return False
        # The containers of a stopped engine can only be deleted by it.
        engine.ensure(ctx)
    _refuse_foreign(ctx)
    there = bool(kind.nodes(ctx)) or bool(ctx.state)
    if kind.nodes(ctx):
        with ctx.progress.step("delete the cluster"):
            kind.delete(ctx)
    for name in ("cluster.json", "kubeconfig", "kind.json"):
        (ctx.folder / name).unlink(missing_ok=True)
    shutil.rmtree(ctx.shared, ignore_errors=True)
    engine.stop_if_ours(ctx)
    return there


def load(ctx: Context, wanted: list[str]) -> None:
    """Puts images into the nodes; without a name, the training image. That and `s3` are made if need be."""
    _require_up(ctx)
    source = images.choose(ctx, "auto")
    named = [objectstore.ensure(ctx) if name == "s3" else name for name in wanted]
    if not named or trainimage.IMAGE in named:
        trainimage.load(ctx, source)
    for image in named:
        if not container.has(ctx, image):
            raise ClusterError(f"docker has no image {image}", f"build it, or pull it: `docker pull {image}`")
        with ctx.progress.step(f"load {image}"):
            if not kind.load(ctx, image):
                ctx.progress.say("the nodes have it already")


def status(ctx: Context) -> dict[str, Any]:
    """What there is, as one JSON object. `ready` tells whether everything is."""
    facts: dict[str, Any] = {"name": ctx.name, "engine": engine.running(ctx), "ready": False, **ctx.state}
    if not facts["engine"] or not ctx.state:
        return facts
    found = kind.nodes(ctx)
    facts["nodes"] = {node.name: "running" if node.running else "stopped" for node in found}
    if not found or any(not node.running for node in found):
        return facts
    kubectl = images.choose(ctx, "auto").kubectl()
    pods = ctx.sh.run(kubectl, "get", "pods", "--all-namespaces", "--output=json", check=False, timeout=30)
    spaces = stack.namespaces(versions.trainer(ctx.state["trainer"]))
    facts["pods_not_ready"] = not_ready(json.loads(pods.out), spaces) if pods.ok else ["the API server does not answer"]
    facts["installed"] = {
        name: recipe.rpartition(" ")[0] for name, recipe in stack.record(ctx, kubectl).items()
    } if pods.ok else {}  # fmt: skip
    usage = ctx.sh.run("docker", "stats", "--no-stream", "--format", "{{.MemUsage}}", *facts["nodes"], check=False)
    facts["memory"] = [line.split(" / ")[0] for line in usage.out.splitlines()]
    facts["kubeconfig"] = str(ctx.kubeconfig)
    facts["ready"] = bool(facts["installed"]) and not facts["pods_not_ready"]
    return facts


def not_ready(pods: dict[str, Any], namespaces: set[str]) -> list[str]:
    """Names of the pods in these namespaces that should run and do not."""
    names = []
    for pod in pods["items"]:
        conditions = pod.get("status", {}).get("conditions", [])
        done = pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        if (
            pod["metadata"]["namespace"] in namespaces
            and not done
            and not any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        ):
            names.append(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    return names


def _create(ctx: Context, source: images.Source, trainer: Trainer, workers: int, api_port: int) -> None:
    if kind.nodes(ctx):
        with ctx.progress.step("remove a half-created cluster"):
            kind.delete(ctx)
    if api_port:
        require_port(api_port)
    require_disk(ctx.home)
    require_disk(engine.data_folder(ctx))
    image = source.node_image()
    ctx.note(phase="creating", source=source.name, trainer=trainer.version, node_image=image)
    with ctx.progress.step("create the cluster"):
        kind.create(ctx, image, source.own_network, workers, api_port)


def _note_made(ctx: Context) -> None:
    if ctx.state.get("phase") != "made":
        ctx.note(phase="made")


def _is_made(ctx: Context) -> bool:
    return ctx.state.get("phase") == "made" and bool(engine.running(ctx) and kind.nodes(ctx))


def _refuse_foreign(ctx: Context) -> None:
    if not ctx.state and kind.nodes(ctx):
        raise ClusterError(
            f"there is a kind cluster {ctx.name!r} that was not made from this work folder ({ctx.home})",
            f"choose another --name, or delete that one: kind delete cluster --name {ctx.name}",
        )


def _refuse_other(ctx: Context, wanted: str, trainer: Trainer) -> None:
    if not _is_made(ctx):
        return
    if wanted not in {"auto", ctx.state.get("source")}:
        raise ClusterError(
            f"the cluster {ctx.name!r} has images from {ctx.state.get('source')}, not {wanted}",
            "choose another --name, or run `down` first",
        )
    made_with = ctx.state.get("trainer")
    if made_with != trainer.version:
        raise ClusterError(
            f"the cluster {ctx.name!r} has Trainer {made_with}, not {trainer.version}",
            f"choose another --name for Trainer {trainer.version}, or run `down` first",
        )


def _require_up(ctx: Context) -> None:
    if not ctx.state or not _is_made(ctx) or any(not node.running for node in kind.nodes(ctx)):
        raise not_up(ctx)


def not_up(ctx: Context) -> ClusterError:
    """The error of a command that needs a cluster."""
    return ClusterError(f"the cluster {ctx.name!r} is not up", f"run: python -m tests.cluster up --name {ctx.name}")


def _leave_nothing(ctx: Context, started: bool) -> None:
    """After a failure: no half of a cluster, and no process if this call started the engine.

    A whole cluster on which something fails stays, to be looked at; the next call goes on from it.
    """
    if ctx.state.get("phase") == "creating" and kind.nodes(ctx):
        kind.delete(ctx)
    if started:
        for node in kind.nodes(ctx):
            ctx.sh.run("docker", "stop", "--time", "5", node.name, check=False)
        engine.stop_if_ours(ctx)
