"""volumes= and volume_mounts= of create_job -> one RuntimePatch of the pod."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainjob.sdkmod import codes
from trainjob.sdkmod.arguments import Argument
from trainjob.sdkmod.data import Expr, NotWritten, Reader, python
from trainjob.sdkmod.layout import Group, Part
from trainjob.sdkmod.objects import remove_parts
from trainjob.sdkmod.script import Script


def volumes_patch(script: Script, call: cst.Call, volumes: Argument | None, mounts: Argument | None) -> Part | None:
    """The option, or None (with a mark) when the volumes do not stand in the script."""
    try:
        reader = Reader(script)
        pod = _read(script, reader, volumes)
        container = _read(script, reader, mounts)
    except NotWritten as err:
        script.source.mark(
            codes.VOLUMES,
            call,
            f"the volumes are gone: {err}",
            "write them as dictionaries in a RuntimePatch option, or put them into a runtime",
        )
        return None
    need = script.need
    parts = [Part("volumes", python(pod))]
    mount = Group(f"{need('ContainerPatch')}(", [Part("name", '"node"'), Part("volume_mounts", python(container))])
    parts.append(Part("containers", Group("[", [Part("", mount)], "]")))
    spec = Group(f"{need('PodSpecPatch')}(", parts)
    job = Group(
        f"{need('ReplicatedJobPatch')}(",
        [
            Part("name", '"node"'),
            Part(
                "template",
                _nest(
                    [
                        (need("JobTemplatePatch"), "spec"),
                        (need("JobSpecPatch"), "template"),
                        (need("PodTemplatePatch"), "spec"),
                    ],
                    spec,
                ),
            ),
        ],
    )
    jobs = Group("[", [Part("", job)], "]")
    outer = [
        (need("RuntimePatch"), "training_runtime_spec"),
        (need("TrainingRuntimeSpecPatch"), "template"),
        (need("JobSetTemplatePatch"), "spec"),
        (need("JobSetSpecPatch"), "replicated_jobs"),
    ]
    script.note(
        codes.VOLUMES,
        call,
        "the volumes are one RuntimePatch of the pods; a job can have only one such option",
        "add service account, node selector or tolerations to the same one",
    )
    remove_parts(script, reader, call)
    return Part("", _nest(outer, jobs))


def _nest(levels: list[tuple[str, str]], inner: Group) -> Group:
    out = inner
    for name, key in reversed(levels):
        out = Group(f"{name}(", [Part(key, out)])
    return out


def _read(script: Script, reader: Reader, argument: Argument | None) -> Any:
    if argument is None:
        return []
    data = reader.read(argument.value)
    if not isinstance(data, list) or any(isinstance(item, Expr) for item in data):
        raise NotWritten(f"{script.text(argument.value)} cannot be read from the script")
    return data
