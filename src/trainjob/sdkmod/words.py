"""Single names and strings: constants of the v1 SDK, its client in annotations, its package in lists."""

from __future__ import annotations

import re

import libcst as cst

from trainjob.sdkmod import codes, surface
from trainjob.sdkmod.script import IN_COMMON, Script, quoted
from trainjob.sdkmod.source import Source


def mentions_v1(source: Source) -> bool:
    """Whether a script names the v1 SDK in an import or a dotted name."""
    return bool(re.search(r"kubeflow\.(training|pytorchjob|tfjob)\b|kubeflow\s+import\s+\(?\s*training\b", source.text))


def constant(script: Script, node: cst.Attribute | cst.Name) -> bool:
    """constants.JOB_CONDITION_SUCCEEDED -> "Complete", constants.PYTORCHJOB_BASE_IMAGE -> the image."""
    if _only_a_part(script, node):
        return False
    name = script.names.v1_name(node)
    if name in surface.JOB_CONSTANTS:
        text = surface.JOB_CONSTANTS[name]
    elif name in surface.TEXTS:
        text = surface.TEXTS[name]
    elif name == "PYTORCHJOB_BASE_IMAGE":
        text = surface.IMAGES.get(script.version, surface.IMAGES[surface.NEWEST])
    elif name in IN_COMMON:
        script.source.edit(node, script.need(name))
        script.rewritten(node)
        return True
    else:
        return False
    script.source.edit(node, quoted(text))
    script.rewritten(node)
    return True


def _only_a_part(script: Script, node: cst.CSTNode) -> bool:
    """Whether a name stands in an import or behind a dot."""
    parent = script.source.parent(node)
    return isinstance(parent, (cst.ImportAlias, cst.ImportFrom)) or (
        isinstance(parent, cst.Attribute) and parent.attr is node
    )


def client_name(script: Script, node: cst.Attribute | cst.Name) -> None:
    """TrainingClient in annotations and elsewhere; an alias stays, its import changes."""
    if _only_a_part(script, node) or script.names.v1_name(node) != surface.CLIENT:
        return
    if not isinstance(node, cst.Name) or node.value == surface.CLIENT:
        script.source.edit(node, script.need("TrainerClient"))


def string(script: Script, node: cst.SimpleString) -> None:
    """kubeflow-training among the packages that a pipeline step installs; an annotation in quotes."""
    parent = script.source.parent(node)
    match = re.fullmatch(r"""([rRuU]?["'])kubeflow[-_]training\b.*(["'])""", node.value)
    if match and isinstance(parent, cst.Element):
        script.source.edit(node, f"{match[1]}kubeflow>=0.5,<0.6{match[2]}")
        script.note(codes.REWRITTEN, node, f"{node.value} becomes kubeflow>=0.5,<0.6")
        script.rewritten(node)
    elif isinstance(parent, cst.Annotation) and surface.CLIENT in node.value and mentions_v1(script.source):
        script.source.edit(node, node.value.replace(surface.CLIENT, script.need("TrainerClient")))
