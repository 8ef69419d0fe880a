"""PyTorchJobs through CustomObjectsApi, as pipeline steps and old scripts make them."""

from __future__ import annotations

from typing import Final

import libcst as cst

from trainjob.findings import Severity
from trainjob.sdkmod import codes, objects
from trainjob.sdkmod.arguments import Arguments
from trainjob.sdkmod.script import Script

_NEW: Final = {"group": '"trainer.kubeflow.org"', "version": '"v1alpha1"', "plural": '"trainjobs"'}
_NAMED: Final = ("group", "version", "namespace", "plural", "name")
_ORDER: Final[dict[str, tuple[str, ...]]] = {
    "create_namespaced_custom_object": ("group", "version", "namespace", "plural", "body"),
    "list_namespaced_custom_object": ("group", "version", "namespace", "plural"),
    "list_cluster_custom_object": ("group", "version", "plural"),
    "get_namespaced_custom_object": _NAMED,
    "get_namespaced_custom_object_status": _NAMED,
    "delete_namespaced_custom_object": _NAMED,
    "patch_namespaced_custom_object": (*_NAMED, "body"),
    "replace_namespaced_custom_object": (*_NAMED, "body"),
}


def rewrite_raw(script: Script, call: cst.Call) -> bool:
    """Rewrite or mark a call of the Kubernetes API that is about PyTorchJobs; False when it is not."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _ORDER:
        return False
    method = call.func.attr.value
    arguments = Arguments(script.source, call, _ORDER[method])
    plural = arguments.all.get("plural")
    if plural is None or str(script.literal(plural.value)).lower() != "pytorchjobs":
        return False
    step = step_name(script, call)
    where = f"the pipeline step {step}" if step else "this call"
    code = codes.PIPELINE_STEP if step else codes.RAW_API
    if method in ("patch_namespaced_custom_object", "replace_namespaced_custom_object"):
        script.source.mark(
            code,
            call,
            f"{where} changes a PyTorchJob in place; most of a TrainJob cannot be changed",
            "create a TrainJob anew, or patch what may change (suspend, labels)",
        )
        return True

    def new_arguments() -> None:
        for key, text in _NEW.items():
            argument = arguments.all.get(key)
            if argument is not None:
                script.source.edit(argument.value, text)
        script.rewritten(call)

    if method == "create_namespaced_custom_object":
        body = arguments.all.get("body")
        if body is None:
            return False

        def put(text: str) -> None:
            new_arguments()
            if not isinstance(body.value, cst.Name):
                script.source.edit(body.value, text)

        objects.create(script, call, body.value, put, where)
        return True
    new_arguments()
    if method.startswith("get"):
        script.source.mark(
            code,
            call,
            f"{where} reads a TrainJob now: its conditions are Suspended, Complete and Failed",
            "there is no Running, Succeeded or replicaStatuses: see what is read from the result",
            Severity.WARNING,
        )
    else:
        script.note(code, call, f"{where} is about trainjobs of trainer.kubeflow.org/v1alpha1 now")
    return True


def step_name(script: Script, node: cst.CSTNode) -> str:
    """The pipeline component that holds a node, by the decorators and wrappers of Kubeflow Pipelines."""
    for ancestor in script.source.ancestors(node):
        if not isinstance(ancestor, cst.FunctionDef):
            continue
        for decorator in ancestor.decorators:
            target = decorator.decorator
            func = target.func if isinstance(target, cst.Call) else target
            if any(q.startswith("kfp.") for q in script.names.qualified(func)):
                return ancestor.name.value
        if ancestor.name.value in _wrapped(script):
            return ancestor.name.value
    return ""


def _wrapped(script: Script) -> set[str]:
    """Functions that are handed to create_component_from_func, func_to_container_op and their like."""
    out = set()
    for call in script.source.nodes(cst.Call):
        if any(q.startswith("kfp.") for q in script.names.qualified(call.func)):
            out |= {a.value.value for a in call.args if isinstance(a.value, cst.Name)}
    return out
