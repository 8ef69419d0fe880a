"""The options of `migrate` for whole trees, charts and clusters, as one value."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from trainjob.cli.common import F


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """What the user said. `all_namespaces` and the following ones belong to `from_cluster`."""

    in_place: bool = False
    backup: str | None = None
    partial: bool = False
    helm_values: tuple[Path, ...] = ()
    helm_release: str | None = None
    helm_namespace: str | None = None
    from_cluster: bool = False
    all_namespaces: bool = False
    namespace: str | None = None
    context: str | None = None
    kubeconfig: Path | None = None
    target_context: str | None = None


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_OPTIONS = (
    click.option("--in-place", is_flag=True, help="Replace the inputs, all or none; they must be committed in Git."),
    click.option("--backup", metavar="SUFFIX", help="With --in-place: keep copies, e.g. .orig, instead of asking Git."),
    click.option("--partial", is_flag=True, help="With --in-place: replace files although some jobs are refused."),
    click.option("--helm-values", type=_FILE, multiple=True, metavar="FILE", help="Values to render charts with."),
    click.option("--helm-release", metavar="NAME", help="Release name to render charts with (default: the chart's)."),
    click.option("--helm-namespace", metavar="NS", help="Namespace to render charts with."),
    click.option("--from-cluster", is_flag=True, help="Inventory of a live cluster instead of files; read-only."),
    click.option("-A", "--all-namespaces", is_flag=True, help="With --from-cluster: look at every namespace."),
    click.option("-n", "--namespace", metavar="NS", help="With --from-cluster: look at one namespace."),
    click.option("--context", metavar="NAME", help="With --from-cluster: context of the kubeconfig."),
    click.option("--kubeconfig", type=_FILE, metavar="FILE", help="With --from-cluster: the kubeconfig."),
    click.option(
        "--target-context", metavar="NAME",
        help="With --from-cluster: check this cluster for what the TrainJobs need, not the same one.",
    ),
)  # fmt: skip
_CLUSTER_ONLY = ("all_namespaces", "namespace", "context", "kubeconfig", "target_context")
_NAMES = tuple(f.name for f in fields(TreeOptions))


def tree_options(function: F) -> F:
    """The options of TreeOptions, given to the command as `tree`."""

    @functools.wraps(function)
    def folded(**given: Any) -> Any:
        return function(tree=TreeOptions(**{name: given.pop(name) for name in _NAMES}), **given)

    out: Any = folded
    for option in reversed(_OPTIONS):
        out = option(out)
    return out  # type: ignore[no-any-return]


def check_usage(tree: TreeOptions, paths: tuple[str, ...], output: Path | None) -> None:
    """Raises UsageError for options that do not go together."""
    if tree.from_cluster:
        if paths or output is not None or tree.in_place:
            raise click.UsageError("--from-cluster is an inventory: it takes no FILE, no -o and no --in-place")
        if tree.all_namespaces and tree.namespace:
            raise click.UsageError("say -A or -n NS, not both")
        return
    if not paths:
        raise click.UsageError("Missing argument 'FILE|DIR|-...'.")
    for name in _CLUSTER_ONLY:
        if getattr(tree, name):
            raise click.UsageError(f"--{name.replace('_', '-')} belongs to --from-cluster")
    if tree.in_place and (output is not None or "-" in paths):
        raise click.UsageError("--in-place replaces files: it takes no -o and no stdin")
    if (tree.backup is not None or tree.partial) and not tree.in_place:
        raise click.UsageError("--backup and --partial belong to --in-place")
