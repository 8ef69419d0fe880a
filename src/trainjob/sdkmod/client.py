"""The client: how it is made, which namespace a call goes to, and its attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import libcst as cst

from trainjob.findings import Severity
from trainjob.sdkmod import codes, surface
from trainjob.sdkmod.arguments import Argument, Arguments
from trainjob.sdkmod.layout import Group, Part
from trainjob.sdkmod.script import UNKNOWN, Script

_ATTRIBUTES: Final = {
    "custom_api": "backend.custom_api",
    "core_api": "backend.core_api",
    "namespace": "backend.namespace",
}


@dataclass(slots=True)
class Maker:
    """One call of TrainingClient. `namespace`: text of the namespace that the new client has."""

    call: cst.Call
    arguments: Arguments
    namespace: str = ""
    hoisted: cst.BaseExpression | None = None
    kind: str = "PyTorchJob"
    others: list[tuple[str, Argument]] = field(default_factory=list)


class Clients:
    """All clients of a script, and where each call goes."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.makers: dict[int, Maker] = {}
        for call in script.names.constructors:
            maker = self._read(call)
            if maker is not None:
                self.makers[id(call)] = maker
        for maker in self.makers.values():
            self._hoist(maker)

    def _read(self, call: cst.Call) -> Maker | None:
        arguments = self.script.arguments(call, "__init__", "the client")
        if arguments is None:
            return None
        maker = Maker(call, arguments)
        namespace = arguments.all.get("namespace")
        if namespace is not None and not _none(namespace.value):
            maker.namespace = self.script.text(namespace.value)
        kind = arguments.all.get("job_kind")
        if kind is not None and not _none(kind.value):
            value = self.script.literal(kind.value)
            maker.kind = "" if value is UNKNOWN else str(value)
        maker.others = [
            (k, a) for k, a in arguments.all.items() if k not in ("namespace", "job_kind") and not _none(a.value)
        ]
        return maker

    def _hoist(self, maker: Maker) -> None:
        """Move the namespace of all calls of a client to the client, where they all say the same one."""
        if maker.namespace:
            return
        given = []
        for call in self.script.source.nodes(cst.Call):
            if not _method(call) or not self.script.names.is_client(_receiver(call)):
                continue
            if [id(m) for m in self.script.names.made_by(_receiver(call))] != [id(maker.call)]:
                continue
            if _method(call) not in surface.POSITIONAL and surface.positional(_method(call), (1, 7)) is None:
                continue
            arguments = Arguments(
                self.script.source, call, surface.positional(_method(call), self.script.version) or ()
            )
            namespace = arguments.all.get("namespace")
            if namespace is None or _none(namespace.value):
                if "job" in arguments.all and "name" not in arguments.all and _method(call).startswith("is_job_"):
                    continue  # it asks no server
                return
            given.append(namespace.value)
        texts = {self.script.text(v) for v in given}
        if len(texts) == 1 and all(self.script.names.usable_at(v, maker.call) for v in given):
            maker.namespace, maker.hoisted = texts.pop(), given[0]

    def kind_of(self, call: cst.Call, arguments: Arguments) -> tuple[str, cst.CSTNode]:
        """The job kind of a call: its own, else its client's. Empty when it cannot be told."""
        own = arguments.take("job_kind")
        if own is not None:
            value = self.script.literal(own.value)
            if value is UNKNOWN:
                value = self.script.literal(self.script.names.default_of(own.value))
                if value == "PyTorchJob":
                    self.script.warn(
                        codes.KIND,
                        own.value,
                        f"job_kind={arguments.text(own)} is a parameter; it is read as its default, PyTorchJob",
                        "jobs of another kind must go another way",
                    )
            return ("" if value is UNKNOWN else str(value)), own.value
        maker = self._maker(call)
        if self.script.version < (1, 8):
            return "PyTorchJob", call  # 1.7 asked by default for TFJobs, whatever they are
        return (maker.kind if maker else "PyTorchJob"), call

    def _maker(self, call: cst.Call) -> Maker | None:
        made = self.script.names.made_by(_receiver(call))
        return self.makers.get(id(made[0])) if len(made) == 1 else None

    def receiver(self, call: cst.Call, arguments: Arguments) -> str:
        """The text of the client for a call; the call's namespace is handled with it."""
        script = self.script
        own = arguments.take("namespace")
        text = script.text(_receiver(call))
        if own is None:
            return text
        namespace, maker = arguments.text(own), self._maker(call)
        if maker is not None and maker.namespace == namespace:
            return text
        config = [Part("namespace", namespace)]
        others = maker.others if maker else []
        carried = all(isinstance(a.value, cst.SimpleString) for _, a in others)
        if carried:
            config += [Part(k, script.text(a.value)) for k, a in others]
        if not carried or maker is None:
            script.source.mark(
                codes.NAMESPACE,
                call,
                f"this call goes to the namespace `{namespace}`, by a client that is made here"
                + ("" if maker else ", for it cannot be told how the other one was made"),
                "give it the context and configuration of the other client, or make one client per namespace",
                Severity.WARNING,
            )
        else:
            script.note(
                codes.NAMESPACE,
                call,
                f"this call goes to the namespace `{namespace}`, and its client does not: it gets a client of its own",
                "make one TrainerClient per namespace if it is called often",
            )
        group = Group(f"{script.need('TrainerClient')}(", [Part("backend_config", self._config(config))])
        return group.flat or script.render(call, group)

    def _config(self, parts: list[Part]) -> Group:
        return Group(f"{self.script.need('KubernetesBackendConfig')}(", parts)

    def rewrite_maker(self, call: cst.Call) -> None:
        """TrainingClient(...) -> TrainerClient(...)."""
        maker = self.makers.get(id(call))
        if maker is None:  # marked
            return
        script, arguments = self.script, maker.arguments
        parts: list[Part] = []
        own = arguments.take("namespace")
        for key, argument in maker.others:
            arguments.take(key)
            parts.append(arguments.part(key, argument))
        if own is not None:
            parts.insert(0, arguments.part("namespace", own))
        elif maker.hoisted is not None:
            parts.insert(0, Part("namespace", maker.namespace))
            script.note(
                codes.NAMESPACE,
                maker.call,
                f"every call of this client named the namespace `{maker.namespace}`: the client does now",
            )
        kind = arguments.take("job_kind")
        if kind is not None and maker.kind != "PyTorchJob":
            fix = surface.OTHER_RUNTIMES.get(maker.kind, "see what the job needs")
            script.source.mark(
                codes.KIND,
                maker.call,
                f"this client was for jobs of the kind {maker.kind or script.text(kind.value)}; a TrainerClient "
                "has none",
                fix,
            )
        script.leftovers(arguments, "TrainingClient")
        alias = isinstance(maker.call.func, cst.Name) and maker.call.func.value != surface.CLIENT
        name = script.text(maker.call.func) if alias else script.need("TrainerClient")
        config = [Part("backend_config", self._config(parts), list(arguments.tail))] if parts else []
        script.put(maker.call, Group(f"{name}(", config), tall=arguments.tall and bool(parts))

    def rewrite_attribute(self, node: cst.Attribute) -> None:
        """client.custom_api -> client.backend.custom_api, and a mark for methods that are not called."""
        script = self.script
        parent = script.source.parent(node)
        if not script.names.is_client(node.value) or (isinstance(parent, cst.Call) and parent.func is node):
            return
        name = node.attr.value
        if name in _ATTRIBUTES:
            script.source.edit(node, f"{script.text(node.value)}.{_ATTRIBUTES[name]}")
            script.note(codes.CLIENT, node, f"{name} is an attribute of the client's backend now")
            script.rewritten(node)
        elif name in surface.POSITIONAL or name in surface.OLD_NAMES:
            script.source.mark(
                codes.DYNAMIC,
                node,
                f"the method {name} is handed on here without its call; it is not rewritten",
                "call it in place",
            )
        elif name in ("api_client", "job_kind"):
            script.source.mark(codes.CLIENT, node, f"a TrainerClient has no attribute {name}", "take it out")


def _receiver(call: cst.Call) -> cst.BaseExpression:
    assert isinstance(call.func, cst.Attribute)
    return call.func.value


def _method(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"
