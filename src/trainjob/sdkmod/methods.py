"""The calls that watch, read and delete jobs."""

from __future__ import annotations

import re
from typing import Final

import libcst as cst
from libcst.helpers import get_full_name_for_node

from trainjob.findings import Severity
from trainjob.sdkmod import codes, surface
from trainjob.sdkmod.arguments import Argument, Arguments
from trainjob.sdkmod.client import Clients
from trainjob.sdkmod.layout import Group, Part
from trainjob.sdkmod.script import UNKNOWN, Script, quoted

_STATUSES: Final = {"is_job_running": "Running", "is_job_succeeded": "Complete", "is_job_failed": "Failed"}
_ALL: Final = '{"Created", "Running", "Complete", "Failed"}'
_JOBSET: Final = "jobset.sigs.k8s.io/jobset-name"
_NODE: Final = "jobset.sigs.k8s.io/replicatedjob-name=node"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"


def get_job(script: Script, clients: Clients, call: cst.Call, arguments: Arguments) -> None:
    """get_job(name, namespace, job_kind, timeout) -> get_job(name)."""
    if not _pytorch(script, clients, call, arguments, "get_job"):
        return
    client = clients.receiver(call, arguments)
    parts = _named(arguments)
    drop_timeout(script, arguments)
    script.leftovers(arguments, "get_job")
    script.put(call, Group(f"{client}.get_job(", parts), tall=arguments.tall)


def list_jobs(script: Script, clients: Clients, call: cst.Call, arguments: Arguments) -> None:
    """list_jobs(namespace, job_kind, timeout) -> list_jobs()."""
    if not _pytorch(script, clients, call, arguments, "list_jobs"):
        return
    client = clients.receiver(call, arguments)
    drop_timeout(script, arguments)
    script.leftovers(arguments, "list_jobs")
    script.note(
        codes.RESULT,
        call,
        "list_jobs fails as a whole while one TrainJob of the namespace names a runtime that is gone or that the SDK "
        "cannot read",
    )
    script.put(call, Group(f"{client}.list_jobs(", []))


def delete_job(script: Script, clients: Clients, call: cst.Call, arguments: Arguments) -> None:
    """delete_job(name, namespace, job_kind, delete_options) -> delete_job(name)."""
    if not _pytorch(script, clients, call, arguments, "delete_job"):
        return
    client = clients.receiver(call, arguments)
    parts = _named(arguments)
    options = arguments.take("delete_options")
    if options is not None:
        script.source.mark(
            codes.ARGUMENT,
            call,
            f"delete_options={arguments.text(options)} is gone: delete_job has no options",
            "delete through client.backend.custom_api where they matter",
            Severity.WARNING,
        )
    script.leftovers(arguments, "delete_job")
    script.put(call, Group(f"{client}.delete_job(", parts), tall=arguments.tall)


def wait(script: Script, clients: Clients, call: cst.Call, arguments: Arguments) -> None:
    """wait_for_job_conditions -> wait_for_job_status."""
    if not _pytorch(script, clients, call, arguments, "wait_for_job_conditions"):
        return
    client = clients.receiver(call, arguments)
    parts = _named(arguments)
    conditions = arguments.take("expected_conditions")
    if conditions is not None:
        parts.append(arguments.part("status", conditions, _status_set(script, call, conditions)))
    old = script.version < (1, 8) and "wait_timeout" not in arguments.all  # `timeout` was the wait itself in 1.7
    limit = arguments.take("timeout" if old else "wait_timeout")
    if limit is not None:
        parts.append(arguments.part("timeout", limit))
    interval = arguments.take("polling_interval")
    if interval is not None:
        parts.append(arguments.part("polling_interval", interval))
    _interval(script, call, limit, interval)
    callback = arguments.take("callback")
    if callback is not None:
        parts.append(arguments.part("callbacks", callback, f"[{arguments.text(callback)}]"))
        script.source.mark(
            codes.RESULT,
            call,
            f"{arguments.text(callback)} is called with a TrainJob of the SDK, not with a V1 object",
            "see what it reads: name, status and steps are there; metadata, spec and conditions are not",
            Severity.WARNING,
        )
    drop_timeout(script, arguments, "timeout")
    drop_timeout(script, arguments, "apiserver_timeout")
    script.leftovers(arguments, "wait_for_job_conditions")
    script.put(call, Group(f"{client}.wait_for_job_status(", parts), tall=arguments.tall)


def _status_set(script: Script, call: cst.Call, argument: Argument) -> str:
    behind = script.names.value_of(argument.value)
    if (
        isinstance(behind, cst.Call)
        and len(behind.args) == 1
        and get_full_name_for_node(behind.func) in ("set", "frozenset")
    ):
        behind = script.names.value_of(behind.args[0].value)
    names: list[str] | None = None
    if isinstance(behind, (cst.Set, cst.List, cst.Tuple)):
        names = []
        for element in behind.elements:
            value = script.literal(element.value)
            constant = script.names.v1_name(element.value)
            if value is UNKNOWN and constant.startswith("JOB_CONDITION_"):
                value = constant.removeprefix("JOB_CONDITION_").capitalize()
            if not isinstance(value, str):
                names = None
                break
            names.append(value)
    if names is None:
        text = script.text(argument.value)
        mapping = "{" + ", ".join(f'"{k}": "{v}"' for k, v in surface.CONDITIONS.items() if k != v) + "}"
        script.source.mark(
            codes.STATUS,
            call,
            f"the statuses in {text} cannot be read here",
            f"v2 says {mapping} and has no Restarting",
            Severity.WARNING,
        )
        return text
    if "Restarting" in names:
        script.source.mark(
            codes.STATUS,
            call,
            "v2 has no status Restarting: a job that restarts is Running",
            "wait for another status",
            Severity.WARNING,
        )
    wanted = {surface.CONDITIONS.get(n, "Running" if n == "Restarting" else n) for n in names}
    if "Created" in wanted:  # v1 kept that condition to the end
        wanted |= {"Running", "Complete"}
    if "Running" in wanted and "Created" not in names:
        script.warn(
            codes.STATUS,
            call,
            "a job that Kueue held back is never shown as Running by the SDK (kubeflow/sdk issue 803)",
            'wait for {"Running", "Complete"}, or read the pods in get_job(name).steps',
        )
    order = ["Created", "Running", "Complete", "Failed"]
    shown = [n for n in order if n in wanted] + sorted(wanted - set(order))
    return "{" + ", ".join(quoted(n) for n in shown) + "}"


def _interval(script: Script, call: cst.Call, limit: Argument | None, interval: Argument | None) -> None:
    most = script.literal(limit.value) if limit else 600
    every = script.literal(interval.value) if interval else 2
    if isinstance(most, (int, float)) and isinstance(every, (int, float)) and every >= most:
        script.source.mark(
            codes.ARGUMENT,
            call,
            f"v2 refuses a polling_interval ({every}) that is not smaller than the timeout ({most})",
            "give a smaller one",
            Severity.WARNING,
        )


def status(script: Script, clients: Clients, call: cst.Call, arguments: Arguments, method: str) -> None:
    """is_job_succeeded(name) -> get_job(name).status == "Complete"."""
    if method == "is_job_restarting":
        script.source.mark(codes.STATUS, call, "v2 has no status Restarting: a job that restarts is Running", "drop it")
        return
    if not _pytorch(script, clients, call, arguments, method):
        return
    client = clients.receiver(call, arguments)
    job = arguments.take("job")
    name = arguments.take("name")
    drop_timeout(script, arguments)
    if job is not None:
        subject = arguments.text(job)
    elif name is not None:
        subject = f"{client}.get_job(name={arguments.text(name)})"
    else:
        script.source.mark(codes.DYNAMIC, call, f"{method} has neither a name nor a job", "name the job")
        return
    script.leftovers(arguments, method)
    test = f"in {_ALL}" if method == "is_job_created" else f'== "{_STATUSES[method]}"'
    text = f"{subject}.status {test}"
    script.source.edit(call, text if _stands_alone(script, call) else f"({text})")
    script.rewritten(call)
    if method == "is_job_running":
        script.note(
            codes.STATUS,
            call,
            "a job that Kueue held back is never shown as Running by the SDK (kubeflow/sdk issue 803)",
        )


def _stands_alone(script: Script, call: cst.Call) -> bool:
    parent = script.source.parent(call)
    if isinstance(parent, cst.UnaryOperation):
        return isinstance(parent.operator, cst.Not)
    if call.lpar:
        return True
    return isinstance(
        parent, (cst.If, cst.While, cst.Assign, cst.Return, cst.Assert, cst.Arg, cst.BooleanOperation, cst.Expr)
    )


def pod_names(script: Script, clients: Clients, call: cst.Call, arguments: Arguments) -> None:
    """get_job_pod_names -> the pods of the steps of get_job."""
    client = clients.receiver(call, arguments)
    name = arguments.take("name")
    choice = pods_chosen(script, arguments, default_master=False)
    drop_timeout(script, arguments)
    script.leftovers(arguments, "get_job_pod_names")
    if name is None or choice is None:
        _unclear(script, call, "get_job_pod_names")
        return
    steps = f"{client}.get_job(name={arguments.text(name)}).steps"
    script.source.edit(call, f"[step.pod_name for step in {steps}{choice.condition}]")
    script.rewritten(call)


def pods(script: Script, clients: Clients, call: cst.Call, arguments: Arguments) -> None:
    """get_job_pods -> the same pods, asked for by the labels of their JobSet."""
    client = clients.receiver(call, arguments)
    name = arguments.take("name")
    choice = pods_chosen(script, arguments, default_master=False)
    drop_timeout(script, arguments)
    script.leftovers(arguments, "get_job_pods")
    if name is None or choice is None or choice.selector is None:
        _unclear(script, call, "get_job_pods")
        return
    value = script.literal(name.value)
    if isinstance(value, str):
        selector = quoted(f"{_JOBSET}={value}{choice.selector}")
    elif re.fullmatch(r"[\w.]+", arguments.text(name)):
        selector = f'f"{_JOBSET}={{{arguments.text(name)}}}{choice.selector}"'
    else:
        selector = f'"{_JOBSET}=" + {arguments.text(name)}' + (f' + "{choice.selector}"' if choice.selector else "")
    group = Group(
        f"{client}.backend.core_api.list_namespaced_pod(",
        [Part("namespace", f"{client}.backend.namespace"), Part("label_selector", selector)],
        ").items",
    )
    script.put(call, group, tall=arguments.tall)
    script.note(
        codes.RESULT,
        call,
        "pods are called <job>-node-0-<i>-..., and their labels are those of JobSet",
        "labels training.kubeflow.org/* are gone",
    )


class Choice:
    """Which pods a v1 call meant. `step`: the text of a step name when it is one pod."""

    def __init__(self, step: str, condition: str, selector: str | None) -> None:
        self.step, self.condition, self.selector = step, condition, selector


def pods_chosen(script: Script, arguments: Arguments, *, default_master: bool) -> Choice | None:
    """Read is_master, replica_type and replica_index; None when they cannot be read.

    v1's Master is node-0, and its Worker i is node-(i + 1).
    """
    master, kind, index = (arguments.take(n) for n in ("is_master", "replica_type", "replica_index"))
    is_master = default_master if master is None else script.literal(master.value)
    replica = script.literal(kind.value) if kind is not None else ""
    if not isinstance(is_master, bool) or not isinstance(replica, str):
        return None
    replica = replica.lower()
    if replica not in ("", "master", "worker") or (is_master and replica == "worker"):
        return None
    if is_master or replica == "master":
        return Choice('"node-0"', ' if step.name == "node-0"', f",{_NODE},{_INDEX}=0")
    if index is not None:
        if replica != "worker":
            return None  # Master 0 and Worker 0
        number = script.literal(index.value)
        if isinstance(number, int):
            return Choice(
                f'"node-{number + 1}"', f' if step.name == "node-{number + 1}"', f",{_NODE},{_INDEX}={number + 1}"
            )
        text = f'f"node-{{{arguments.text(index)} + 1}}"'
        return Choice(text, f" if step.name == {text}", None)
    if replica == "worker":
        return Choice("", ' if step.name.startswith("node-") and step.name != "node-0"', f",{_NODE},{_INDEX}!=0")
    return Choice("", "", "")


def no_method(script: Script, call: cst.Call, method: str, why: str, fix: str) -> None:
    """Mark a call that cannot be rewritten."""
    script.source.mark(codes.NO_METHOD, call, f"{method}: {why}", fix)


def _unclear(script: Script, call: cst.Call, method: str) -> None:
    script.source.mark(
        codes.DYNAMIC,
        call,
        f"{method}: it cannot be told which pods are meant, or v1 found none",
        'v1\'s Master is the step "node-0", its Worker i is "node-<i + 1>"',
    )


def _pytorch(script: Script, clients: Clients, call: cst.Call, arguments: Arguments, method: str) -> bool:
    kind, where = clients.kind_of(call, arguments)
    if kind == "PyTorchJob":
        return True
    shown = kind or script.text(where)
    script.source.mark(
        codes.KIND,
        call,
        f"{method} is for a job of the kind {shown}: not rewritten",
        surface.OTHER_RUNTIMES.get(kind, "write the kind out if it is PyTorchJob"),
    )
    return False


def _named(arguments: Arguments) -> list[Part]:
    name = arguments.take("name")
    return [arguments.part("name", name)] if name is not None else []


def drop_timeout(script: Script, arguments: Arguments, key: str = "timeout") -> None:
    """The time limit of a single request: v2 has a fixed one (2 minutes)."""
    found = arguments.take(key)
    if found is not None:
        script.note(
            codes.ARGUMENT,
            found.value,
            f"{key}={arguments.text(found)} bounded one request to the API server; v2 has a limit of its own for that",
        )
