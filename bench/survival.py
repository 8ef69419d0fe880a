"""How soon a disturbed job trains again, and a new one for the first time: our runtime beside others.

python bench/survival.py [--faults F] [--forms ours,stock] [--rounds 3] [--program tune.py]

Needs the cluster of `make cluster`. Every form runs the same program (tests/e2e/programs: two nodes, FSDP2,
a checkpoint every 5 steps) and suffers each fault in turn, in the same run. Prints medians
and their quotients beside the targets; exit code 1 when one is missed or a job did not survive.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import os
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.cluster.context import Context
from tests.e2e.conftest import kubectl_of
from tests.e2e.kube import Kubectl
from tests.e2e.survival import LAUNCH, PLAIN_IMAGE, Form, Run, job_of, launch_env, ours, stock

OURS, STOCK, PLAIN = "ours", "stock", "stock, plain image"
MAX_RECOVERY_PLAIN, MAX_RECOVERY_SAME, MAX_START_PLAIN, MAX_OVERHEAD = 0.45, 0.85, 0.40, 1.0

FAULTS: dict[str, Callable[[Run], float]] = {
    "worker killed": lambda run: run.signal(1, "KILL"),
    "rank 0 killed": lambda run: run.signal(0, "KILL"),
    "worker pod deleted": lambda run: run.delete_pod(1),
    "rank 0 pod deleted": lambda run: run.delete_pod(0),
    "pod evicted": lambda run: run.evict(1),
}


def one_pod() -> dict[str, Any]:
    """Ours, but a lost pod is replaced alone, and the others wait for it."""
    runtime = ours()
    runtime["metadata"]["name"] = "one-pod"
    job = job_of(runtime)
    job["backoffLimit"] = 6
    for rule in job["podFailurePolicy"]["rules"][:2]:
        rule["action"] = "Ignore"
    return runtime


def in_place() -> dict[str, Any]:
    """Stock, with JobSet's restart behind the kubelet's own."""
    runtime = copy.deepcopy(stock())
    runtime["metadata"]["name"] = "in-place"
    job_of(runtime)["template"]["spec"]["restartPolicy"] = "OnFailure"
    runtime["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 3}
    return runtime


FORMS = (
    Form(OURS, ours(), LAUNCH, launch_env()),
    Form("ours, torchrun", ours(), ("torchrun",)),
    Form(STOCK, stock(), ("torchrun",)),
    Form(PLAIN, stock(), ("torchrun",), PLAIN_IMAGE),
    Form("stock, our launcher", stock(), LAUNCH, launch_env()),
    Form("one pod at a time", one_pod(), LAUNCH, launch_env()),
    Form("in place, then all", in_place(), ("torchrun",)),
)


@dataclass(frozen=True)
class Result:
    form: str
    fault: str
    start: float  # submit to first step, s
    overhead: float  # containers started to first step, s
    recovery: float  # fault to next step, s
    lost: int  # steps done twice
    restarts: int
    loss: str


def measure(kubectl: Kubectl, form: Form, fault: str, number: int, program: str) -> Result:
    """One job, one fault. Raises AssertionError when it does not end as Complete."""
    # The moment at which each container starts; the API tells whole seconds only.
    clock = ("sh", "-c", 'date +%s.%N > /checkpoints/boot-$JOB_COMPLETION_INDEX; exec "$@"', "--", *form.launcher)
    run = Run(kubectl, replace(form, launcher=clock), f"b{number}", env={"STEPS": "30"}, program=program)
    run.submit()
    try:
        run.wait_step(7, seconds=300)
        ready = max(float((run.folder / f"boot-{i}").read_text()) for i in range(run.nodes))
        start = run.first_step()
        when = FAULTS[fault](run)
        state = kubectl.finished(run.name, seconds=600)
        if state != "Complete":
            raise AssertionError(f"{form.name}, {fault}: {state}")
        return Result(
            form.name, fault, start, run.submitted + start - ready, run.recovery(when), run.lost_steps(),
            run.restarts(), run.loss(),
        )  # fmt: skip
    finally:
        kubectl.run("delete", "trainjob", run.name, "--wait=true", check=False)


def medians(results: list[Result], form: str, what: str, fault: str = "") -> float:
    values = [getattr(r, what) for r in results if r.form == form and fault in ("", r.fault)]
    return float(statistics.median(values)) if values else float("nan")


def report(results: list[Result], forms: list[str], faults: list[str]) -> list[str]:
    """Prints the tables; returns what missed its target."""
    print("\n| form | submit to first step | " + " | ".join(faults) + " | steps lost |")
    print("|---|" + "---|" * (len(faults) + 2))
    for form in forms:
        cells = [f"{medians(results, form, 'recovery', fault):.1f}" for fault in faults]
        lost = max((r.lost for r in results if r.form == form), default=0)
        print(f"| {form} | {medians(results, form, 'start'):.1f} | " + " | ".join(cells) + f" | {lost} |")
    checks: list[tuple[str, float, float]] = []
    for other, limit in ((PLAIN, MAX_RECOVERY_PLAIN), (STOCK, MAX_RECOVERY_SAME)):
        for fault in faults:
            quotient = medians(results, OURS, "recovery", fault) / medians(results, other, "recovery", fault)
            checks.append((f"recovery after {fault}, to {other}", quotient, limit))
    start = medians(results, OURS, "start") / medians(results, PLAIN, "start")
    checks.append((f"submit to first step, to {PLAIN}", start, MAX_START_PLAIN))
    overhead = medians(results, OURS, "overhead") - medians(results, STOCK, "overhead")
    checks.append(("containers started to first step, beyond stock, s", overhead, MAX_OVERHEAD))
    print("\n| quotient | measured | at most | |\n|---|---|---|---|")
    missed = []
    for name, value, limit in checks:
        if value != value:  # a form was left out
            continue
        met = value <= limit
        print(f"| {name} | {value:.2f} | {limit:.2f} | {'met' if met else 'MISSED'} |")
        missed += [] if met else [name]
    if len({r.loss for r in results}) > 1:
        missed.append("the last losses differ")
    if any(r.lost > 5 for r in results if r.form == OURS):
        missed.append("more than one checkpoint interval was lost")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--forms", default=f"{OURS},{STOCK},{PLAIN}".replace(PLAIN, "stock; plain image"), help="comma")
    parser.add_argument("--faults", default=",".join(FAULTS), help="comma")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", default="resume.py", help="resume.py (torch alone), tune.py (transformers)")
    args = parser.parse_args()
    forms = [f.strip().replace(";", ",") for f in args.forms.split(",")]
    if args.forms == "all":
        forms = [f.name for f in FORMS]
    faults = [f.strip() for f in args.faults.split(",")]
    known = {f.name: f for f in FORMS}
    context = Context(os.environ.get("CLUSTER", "trainjob"))
    base = Kubectl(kubectl_of(context), context.kubeconfig)
    space = f"bench-{uuid.uuid4().hex[:5]}"
    base.run("create", "namespace", space)
    base.run("label", "namespace", space, "trainjob.dev/multi-node=allowed")
    results, failed, number = [], [], itertools.count(1)
    try:
        for _, fault, form in itertools.product(range(args.rounds), faults, forms):
            begin = time.monotonic()
            try:
                result = measure(replace(base, namespace=space), known[form], fault, next(number), args.program)
            except (AssertionError, StopIteration, LookupError) as error:
                failed.append(f"{form}, {fault}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
                print(f"FAILED {failed[-1]}", file=sys.stderr, flush=True)
                continue
            results.append(result)
            print(f"{time.monotonic() - begin:5.0f} s  {result}", file=sys.stderr, flush=True)
    finally:
        base.run("delete", "namespace", space, "--wait=false")
    load = os.getloadavg()
    print(f"{args.program}, {args.rounds} rounds, {os.cpu_count()} cores, load {load[0]:.1f}; seconds, medians")
    missed = report(results, forms, faults) + failed
    for name in missed:
        print(f"missed: {name}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
