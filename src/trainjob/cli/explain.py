"""`trainjob explain`: what a finding code means, from the rule's own text."""

from __future__ import annotations

import sys

import click

from trainjob.cli.common import say


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Say what a finding code means; without a code, list them all.

    \b
    trainjob explain TJ206
    """
    from trainjob.cli.codes import documented

    entries = documented()
    if code is None:
        for entry in entries.values():
            click.echo(f"{entry.code}  {entry.name:<24}  {entry.title}")
        return
    wanted = entries.get(code.upper())
    if wanted is None:
        say(f"error: no code {code!r}; `trainjob explain` lists them all")
        sys.exit(2)
    click.echo(f"{wanted.code} {wanted.name}\n\n{wanted.text}")
    if wanted.claims:
        click.echo("\nv1 fields that it answers for:")
        for field, outcome, becomes in wanted.claims:
            click.echo(f"  {field}  {outcome}{f' -> {becomes}' if becomes else ''}")
