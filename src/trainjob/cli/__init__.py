"""Command line: one module a subcommand, imported only when it is called.

Exit codes of every command: 0 clean, 1 findings at or above the threshold, 2 unreadable input or
wrong usage. The product goes to stdout, everything said about it to stderr.
"""

from __future__ import annotations

import importlib
from typing import Final

import click

from trainjob import __version__

# name -> (module, one line for --help). The line stands here so that --help imports none of them.
_COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "migrate": ("migrate", "Turn v1 PyTorchJobs into TrainJobs, or say why not."),
    "migrate-sdk": ("migrate_sdk", "Turn Python scripts of the v1 SDK into TrainerClient, find pipeline steps."),
    "build": ("build", "Write a TrainJob for a runtime of the catalogue."),
    "runtimes": ("runtimes", "List, show and compare the curated runtimes."),
    "validate": ("validate", "Check TrainJobs and runtimes for a Trainer version, without a cluster."),
    "render": ("render", "Render an overlay with kustomize, and check what comes out."),
    "launch": ("launch", "In a training pod: torchrun with faster starts and restarts."),
    "explain": ("explain", "Say what a finding code means."),
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = _COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = importlib.import_module(f"trainjob.cli.{entry[0]}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="trainjob")
def command() -> None:
    """Run, build, migrate and check distributed training on Kubeflow Trainer v2.

    \b
    trainjob migrate pytorchjob.yaml          what a v1 job is in v2
    trainjob runtimes list                    the curated runtimes
    trainjob build --runtime torch-fsdp-8gpu --name tune --image ... -- torchrun train.py
    trainjob validate job.yaml --target rhoai-3.5

    Exit codes: 0 clean, 1 findings, 2 unreadable input or wrong usage.
    """


def main() -> None:
    """Entry point of the `trainjob` script."""
    command(prog_name="trainjob")


if __name__ == "__main__":
    main()
