"""`trainjob render`: an overlay through kustomize, checked before anybody applies it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trainjob import kustomize
from trainjob.cli.common import fail_on_option, print_findings, say, target_option, threshold
from trainjob.findings import Location, Report
from trainjob.kube import yaml
from trainjob.targets import Target
from trainjob.validate import check_documents


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("folder", type=click.Path(path_type=Path))
@target_option
@fail_on_option
def command(folder: Path, target: Target, fail_on: str) -> None:
    """Render an overlay with kustomize, and check what comes out.

    Uses `kustomize`, `kubectl` or `oc`, whichever is there (TRAINJOB_KUSTOMIZE names one), or the
    kubectl of the extra `kustomize`. The rendered bytes go to stdout exactly as the engine wrote them,
    but only when they are valid for the target.

    \b
    trainjob render overlays/prod | oc apply --server-side -f -
    trainjob render overlays/rhoai-3.5 --target rhoai-3.5
    """
    try:
        engine = kustomize.find_engine()
        rendered = kustomize.build(folder, engine)
    except kustomize.KustomizeError as err:
        say(f"error: {err.message}")
        if err.fix:
            say(f"    fix: {err.fix}")
        sys.exit(2)
    documents = yaml.load(rendered.decode("utf-8"), str(folder))
    findings = check_documents(documents, target)
    report = Report(tuple(findings))
    print_findings(findings)
    kinds = [str(d.data.get("kind")) for d in documents if d.data is not None]
    if not kinds:
        say(f"error: {Location(str(folder))} renders nothing")
        sys.exit(2)
    count = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    say(f"{engine}: {count}; valid for Trainer {target}" if not findings else f"{engine}: {count}")
    code = report.exit_code(threshold(fail_on))
    if code == 0:
        sys.stdout.buffer.write(rendered)
        sys.stdout.flush()
    sys.exit(code)
