"""What scripts read from the job that get_job, list_jobs and wait_for_job_conditions gave."""

from __future__ import annotations

from typing import Final

import libcst as cst

from trainjob.findings import Severity
from trainjob.sdkmod import codes
from trainjob.sdkmod.names import Kind
from trainjob.sdkmod.script import Script

_SAME: Final = {"metadata.name": "name", "metadata.creation_timestamp": "creation_timestamp"}
_KNOWN: Final = frozenset({"name", "runtime", "steps", "num_nodes", "status", "creation_timestamp"})


def rewrite_result(script: Script, node: cst.Attribute) -> None:
    """job.metadata.name -> job.name; a mark where v2 has nothing."""
    source = script.source
    if Kind.JOB in script.names.kind(node.value):
        top, path = _whole(script, node)
        first = path.split(".")[0]
        if path in _SAME:
            source.edit(top, f"{script.text(node.value)}.{_SAME[path]}")
            script.note(codes.RESULT, top, f"{path} of the job is {_SAME[path]} now")
            script.rewritten(top)
        elif path.startswith("status.") or first not in _KNOWN:
            source.mark(
                codes.RESULT,
                node,
                f"{path} of the job is not there any more",
                "status is one word (Created, Running, Complete, Failed); the whole object: "
                "client.backend.custom_api.get_namespaced_custom_object"
                if first == "status"
                else "the whole object: client.backend.custom_api.get_namespaced_custom_object",
                Severity.WARNING,
            )


def _whole(script: Script, node: cst.Attribute) -> tuple[cst.Attribute, str]:
    """The longest dotted name that starts with this attribute, as node and as path from the job."""
    path = node.attr.value
    top = node
    while True:
        parent = script.source.parent(top)
        if not isinstance(parent, cst.Attribute) or parent.value is not top:
            return top, path
        top, path = parent, f"{path}.{parent.attr.value}"
        if path in _SAME:
            return top, path
