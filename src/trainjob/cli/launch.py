"""`trainjob launch`: in a training pod, in the place of torchrun."""

from __future__ import annotations

import sys

import click


@click.command(
    "launch",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="[TORCHRUN OPTIONS]",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGUMENTS]")
def command(arguments: tuple[str, ...]) -> None:
    """Run a training script on this pod's ranks, as torchrun does, with faster starts and calmer restarts."""
    from trainjob.launch.run import main

    sys.exit(main(arguments))
