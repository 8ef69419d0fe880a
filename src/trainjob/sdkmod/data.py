"""Objects that a script writes out (dictionaries, lists, V1 models) as data, and data as Python again.

An expression that is no literal stays an expression: an `Expr` in the data, and its own text in the output.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any, Final

import libcst as cst
from libcst.helpers import get_full_name_for_node

from trainjob.sdkmod.layout import Group, Part
from trainjob.sdkmod.script import Script, quoted

_MODELS: Final = re.compile(r"(?:^|\.)(V1\w+|CoreV1\w+|KubeflowOrgV1\w+)$")
_WRAPPERS: Final = frozenset({"sanitize_for_serialization", "to_dict", "deepcopy", "copy"})
# Field names whose capitals do not follow from the Python name (kubernetes 35 client/models attribute_map).
_ODD: Final = {
    "_from": "from",
    "_continue": "continue",
    "cluster_ip": "clusterIP",
    "host_ip": "hostIP",
    "pod_ip": "podIP",
    "external_ips": "externalIPs",
    "host_ipc": "hostIPC",
    "host_pid": "hostPID",
    "scale_io": "scaleIO",
    "disk_uri": "diskURI",
    "wwids": "wwids",
    "volume_id": "volumeID",
    "pd_name": "pdName",
    "fs_type": "fsType",
    "pytorch_replica_specs": "pytorchReplicaSpecs",
    "ttl_seconds_after_finished": "ttlSecondsAfterFinished",
    "storage_policy_id": "storagePolicyID",
    "ca_cert": "caCert",
    "host_ips": "hostIPs",
    "i_pv6": "IPv6",
    "_lifecycle": "lifecycle",
    "_exec": "exec",
}


class NotWritten(Exception):  # noqa: N818 - it says what the object is
    """The object does not stand in the script as a whole. The message says what is missing."""


@dataclass(frozen=True, slots=True)
class Expr:
    """The text of an expression."""

    text: str


class Reader:
    """Reads expressions. `used`: names of variables that the data came from."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.used: list[cst.Name] = []
        self._depth = 0

    def read(self, node: cst.BaseExpression) -> Any:
        """The data behind an expression. Raises NotWritten."""
        self._depth += 1
        try:
            if self._depth > 60:
                raise NotWritten("it refers to itself")
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: cst.BaseExpression) -> Any:
        if isinstance(node, cst.Name) and node.value not in ("None", "True", "False"):
            return self._variable(node)
        if isinstance(node, cst.Dict):
            return self._dict(node)
        if isinstance(node, (cst.List, cst.Tuple)):
            if any(isinstance(e, cst.StarredElement) for e in node.elements):
                raise NotWritten(f"a list is put together: {self._source(node)}")
            return [self.read(e.value) for e in node.elements]
        if isinstance(node, cst.Call):
            return self._call(node)
        try:
            return ast.literal_eval(self._source(node))
        except (ValueError, SyntaxError, TypeError):
            return Expr(self._source(node))

    def _source(self, node: cst.BaseExpression) -> str:
        return self.script.source.text_of(node).strip()

    def _variable(self, node: cst.Name) -> Any:
        behind = self.script.names.value_of(node)
        if isinstance(behind, (cst.Dict, cst.List, cst.Tuple)) or (
            isinstance(behind, cst.Call) and self._is_model(behind)
        ):
            if self._changed(node):
                raise NotWritten(f"{node.value} is changed after it was made")
            self.used.append(node)
            return self.read(behind)
        if len(self.script.names.assignments(node)) > 1:
            raise NotWritten(f"{node.value} is assigned more than once")
        return Expr(node.value)

    def _changed(self, node: cst.Name) -> bool:
        """Whether something is put into a variable later: x["a"] = ..., x.spec.y = ..., x.update(...)."""
        source = self.script.source
        for access in self.script.names.accesses(node):
            top: cst.CSTNode = access
            while isinstance(parent := source.parent(top), (cst.Attribute, cst.Subscript)) and parent.value is top:
                top = parent
            if top is access:
                continue
            parent = source.parent(top)
            if isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.Del)):
                return True
            if isinstance(parent, cst.Call) and parent.func is top:
                name = (get_full_name_for_node(top) or "").rpartition(".")[2]
                if name in ("append", "update", "extend", "insert", "setdefault", "pop"):
                    return True
        return False

    def _dict(self, node: cst.Dict) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for element in node.elements:
            if not isinstance(element, cst.DictElement):
                raise NotWritten(f"a dictionary is put together: {self._source(node)[:60]}")
            key = self.script.literal(element.key)
            if not isinstance(key, str):
                raise NotWritten(f"the key {self._source(element.key)} is no literal")
            out[key] = self.read(element.value)
        return out

    def _is_model(self, call: cst.Call) -> bool:
        names = self.script.names.qualified(call.func) or {get_full_name_for_node(call.func) or ""}
        return any(_MODELS.search(n) for n in names)

    def _call(self, call: cst.Call) -> Any:
        name = (get_full_name_for_node(call.func) or "").rpartition(".")[2]
        if self._is_model(call):
            out = {}
            for arg in call.args:
                if arg.keyword is None or arg.star:
                    raise NotWritten(f"{name} is called with arguments that have no name")
                value = self.read(arg.value)
                if value is not None:
                    out[camel(arg.keyword.value)] = value
            return out
        if name == "dict" and all(a.keyword is not None and not a.star for a in call.args):
            return {a.keyword.value: self.read(a.value) for a in call.args if a.keyword is not None}
        if name in _WRAPPERS and len(call.args) == 1:
            return self.read(call.args[0].value)
        if name in _WRAPPERS and not call.args and isinstance(call.func, cst.Attribute):
            return self.read(call.func.value)
        return Expr(self._source(call))


def camel(name: str) -> str:
    """The field of the API behind an argument of a Kubernetes model."""
    if name in _ODD:
        return _ODD[name]
    head, *rest = name.split("_")
    return head + "".join(r[:1].upper() + r[1:] for r in rest)


def python(data: Any, expressions: dict[str, str] | None = None) -> str | Group:
    """Data as Python. `expressions`: placeholder -> the text of the expression that it stands for."""
    known = expressions or {}
    if isinstance(data, Expr):
        return data.text
    if isinstance(data, dict):
        parts = [Part(str(python(k, known)), python(v, known), separator=": ") for k, v in data.items()]
        return Group("{", parts, "}")
    if isinstance(data, list):
        return Group("[", [Part("", python(v, known)) for v in data], "]")
    if isinstance(data, str):
        return _text(data, known)
    return repr(data)


def _text(data: str, known: dict[str, str]) -> str:
    if data in known:
        return known[data]
    inside = [p for p in known if p in data]
    if not inside:
        return quoted(data)
    out = data.replace("{", "{{").replace("}", "}}").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    for placeholder in sorted(inside, key=len, reverse=True):
        expression = known[placeholder]
        if '"' in expression or "\\" in expression or "\n" in expression:  # not inside an f-string before 3.12
            raise NotWritten(f"{expression} stands inside a text")
        out = out.replace(placeholder, f"{{{expression}}}")
    return f'f"{out}"'
