"""nprocPerNode becomes numProcPerNode, where v2 would not find the number by itself.

What it does: an integer is carried; `auto` and `gpu` are left out when the pod has GPUs, since
Trainer then says `auto` too; devices whose name holds no "gpu" (MIG, Neuron, Gaudi) get an
explicit number, because Trainer would start one process per CPU.
Why it matters: kubeflow/trainer v2.3.0 pkg/runtime/framework/plugins/torch/torch.go:121-135 looks
only for resource names with "gpu" in them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.kube import quantity
from trainjob.migrate.launch import Launch, Style, classify
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ103", job)
    elastic_old = (job.elastic or {}).get("nProcPerNode")
    path = ("spec", "nprocPerNode") if job.spec.get("nprocPerNode") else ("spec", "elasticPolicy", "nProcPerNode")
    if elastic_old is not None:
        if job.spec.get("nprocPerNode"):
            yield say.warning(
                ("spec", "elasticPolicy", "nProcPerNode"),
                "v1 refuses both nprocPerNode fields; spec.nprocPerNode is used",
            )
        else:
            yield say.note(path, "the deprecated elasticPolicy.nProcPerNode becomes numProcPerNode")
    nproc, count = job.nproc, job.nproc_number
    main = draft.roles[0].main
    launch = classify(main.get("command"), main.get("args"))
    resources = main.get("resources") or {}
    flag = launch.literal("nproc-per-node")
    if count:
        draft.procs_per_node = count
        if count > 1 and launch.style is Style.PYTHON and not launch.shell:
            yield say.warning(
                path,
                f"nprocPerNode {nproc} with plain python: v1 set WORLD_SIZE {draft.world_size} but started "
                f"{draft.nodes} process{'es' if draft.nodes != 1 else ''}, so env:// waited for ever; it does so in v2",
                "start the script with torchrun, or remove nprocPerNode",
            )
        return
    if nproc not in ("auto", "gpu", "cpu"):
        raise say.refuse(
            path, f"nprocPerNode {nproc!r} is none of auto, gpu, cpu or a number", "v1 torchrun would refuse it too"
        )
    if nproc == "cpu":
        cpu = (resources.get("requests") or {}).get("cpu") or (resources.get("limits") or {}).get("cpu")
        draft.procs_per_node = derived(quantity.whole_up(cpu), nproc, cpu) if cpu is not None else None
        yield say.warning(
            path,
            "nprocPerNode cpu started one process per CPU of the host in v1; v2 starts "
            + (f"{draft.procs_per_node}, the CPU request rounded up" if draft.procs_per_node else "1"),
            "set the number of processes explicitly",
        )
        return
    if quantity.names_gpu(resources):
        if flag is not None and launch.style.torch:
            yield say.note(
                draft.roles[0].main_path,
                f"torchrun's own --nproc_per_node={flag} decides the number of processes: "
                f"{draft.nodes} x {flag} = {draft.nodes * flag}",
            )
        return
    yield from _without_gpu_name(say, draft, launch, flag)


def _without_gpu_name(say: Say, draft: Draft, launch: Launch, flag: int | None) -> Iterator[Finding]:
    main, at = draft.roles[0].main, draft.roles[0].main_path
    resources = main.get("resources") or {}
    devices = quantity.accelerators(resources)
    if devices:
        name, amount = next(iter(devices.items()))
        if flag is not None:
            number = flag
        elif launch.many_processes and "mig-" not in name:
            number = int(sum(devices.values()))
        else:
            number = 1
        asked = [(resources.get(kind) or {}).get(key) for kind in ("limits", "requests") for key in devices]
        # The launcher's own words; the rest of the command line says nothing about processes.
        line = (*(main.get("command") or ()), *(main.get("args") or ()))
        words = [w for w in line if "torch" in w or "nproc" in w or w == str(flag)] if flag is not None else []
        draft.procs_per_node = derived(number, asked, words)
        yield say.note(
            (*at, "resources"),
            f"numProcPerNode {number} is set explicitly: Trainer does not take {name} "
            f"({quantity.show(amount)} per pod) for a GPU and would start one process per CPU",
        )
        return
    if launch.style is Style.PYTHON or (launch.shell and not launch.many_processes):
        return
    cpu = (resources.get("requests") or {}).get("cpu") or (resources.get("limits") or {}).get("cpu")
    count = quantity.whole_up(cpu) if cpu is not None else 1
    if flag is not None:
        yield say.note(at, f"torchrun's own --nproc_per_node={flag} decides the number of processes per node")
        return
    yield say.warning(
        at,
        f"a launcher that asks for the processes per node ({launch.style}) got `auto` in v1, which is the CPU "
        f"count of the host; v2 says {count}"
        + (f", from the CPU request {cpu}" if cpu is not None else ", since no resources are set"),
        "set nprocPerNode to the number that you mean",
    )


RULE = Rule(
    "TJ103",
    "processes-per-node",
    (
        Claim("spec.nprocPerNode", Outcome.TRANSLATED, "spec.trainer.numProcPerNode"),
        Claim("spec.elasticPolicy.nProcPerNode", Outcome.TRANSLATED, "spec.trainer.numProcPerNode"),
    ),
    _apply,
)
