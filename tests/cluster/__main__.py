"""The command: `python -m tests.cluster up|down|status|load|kubeconfig|image|train-tests`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from . import engine, images, trainimage, traintests, up
from .context import Context
from .problems import ClusterError
from .versions import DEFAULT_TRAINER, TRAINERS, trainer


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; 0 done, 1 cannot go on (with the next step on stderr), 130 interrupted."""
    parser = _parser()
    args, others = parser.parse_known_args(argv)
    if others and args.command != "train-tests":
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        ctx = Context(args.name)
        if args.command == "kubeconfig":
            if not ctx.kubeconfig.is_file():
                raise up.not_up(ctx)
            print(ctx.kubeconfig)
            return 0
        if args.command == "status":
            facts = up.status(ctx)
            print(json.dumps(facts, indent=1))
            return 0 if facts["ready"] else 1
        if args.command == "train-tests":
            return traintests.run(ctx, others)
        with ctx.lock():
            return _work(ctx, args)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on from here", file=sys.stderr)
        return 130


def _work(ctx: Context, args: argparse.Namespace) -> int:
    outcome = "failed"
    try:
        if args.command == "up":
            up.up(ctx, args.source, trainer(args.trainer), args.workers, args.gpus, args.api_port)
            ctx.progress.say(f"ready: export KUBECONFIG={ctx.kubeconfig}")
        elif args.command == "load":
            up.load(ctx, args.images)
        elif args.command == "image":
            engine.ensure(ctx)
            ctx.progress.say(trainimage.ensure(ctx, images.choose(ctx, "auto")))
        elif not up.down(ctx):
            ctx.progress.say(f"there is no cluster {ctx.name!r}")
        outcome = "ok"
    finally:
        facts = {"source": ctx.state.get("source", ""), "trainer": ctx.state.get("trainer", "")}
        ctx.progress.record(ctx.timings, args.command, outcome, facts)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster",
        description="A kind cluster with Trainer, JobSet, Kueue, the v1 operator and fake GPUs.",
    )
    common = argparse.ArgumentParser(add_help=False)
    name = os.environ.get("CLUSTER") or "trainjob"
    common.add_argument("--name", default=name, help="of the cluster (default: $CLUSTER, else trainjob)")
    commands = parser.add_subparsers(dest="command", required=True)
    bring_up = commands.add_parser("up", parents=[common], help="make it ready; does nothing when it is")
    bring_up.add_argument("--source", choices=("auto", *images.NAMES), default="auto", help="where images come from")
    bring_up.add_argument("--trainer", default=DEFAULT_TRAINER, choices=tuple(TRAINERS), help="Trainer's version")
    bring_up.add_argument("--workers", type=int, default=0, help="nodes beside the control plane (default: none)")
    bring_up.add_argument("--gpus", type=int, default=8, help="fake GPUs a node")
    bring_up.add_argument("--api-port", type=int, default=0, help="of the API server (default: any that is free)")
    commands.add_parser("down", parents=[common], help="delete it")
    commands.add_parser("status", parents=[common], help="print what there is, as JSON; exit 0 when all is ready")
    commands.add_parser("kubeconfig", parents=[common], help="print the path of its private kubeconfig")
    bring_in = commands.add_parser("load", parents=[common], help="put images into its nodes")
    bring_in.add_argument("images", nargs="*", metavar="IMAGE", help="or s3 (default: the training image)")
    commands.add_parser("image", parents=[common], help="make the training image for CPUs; nothing when it is made")
    commands.add_parser(
        # What it does not know goes to pytest, also what looks like a part of one of its own options.
        "train-tests", parents=[common], help="run tests/train in the training image", allow_abbrev=False,
        usage="%(prog)s [-h] [--name NAME] [argument of pytest ...]",
    )  # fmt: skip
    return parser


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
