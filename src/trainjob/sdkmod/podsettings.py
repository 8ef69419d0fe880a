"""What one pod asks for: resources and environment of create_job."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainjob.findings import Severity
from trainjob.kube import quantity
from trainjob.sdkmod import codes
from trainjob.sdkmod.arguments import Argument, Arguments
from trainjob.sdkmod.data import NotWritten, Reader
from trainjob.sdkmod.layout import Group, Part
from trainjob.sdkmod.script import Script


class PodSettings:
    """Resources and environment of one call."""

    def __init__(self, script: Script, call: cst.Call, arguments: Arguments) -> None:
        self.script, self.call, self.arguments = script, call, arguments

    def _resource_values(self, argument: Argument) -> dict[str, Any] | None:
        value = self.script.literal(argument.value)
        if isinstance(value, dict) and all(isinstance(k, str) for k in value):
            return value
        try:
            data = Reader(self.script).read(argument.value)
        except NotWritten:
            return None
        if isinstance(data, dict):
            data = data.get("limits", data.get("requests", data))
        return data if isinstance(data, dict) else None

    def resources(self, argument: Argument | None) -> list[Part]:
        if argument is None:
            return []
        script = self.script
        behind = script.names.value_of(argument.value)
        if isinstance(behind, cst.Call):
            return self._requirements(argument, behind)
        if behind is None or not isinstance(behind, cst.Dict):
            script.warn(
                codes.RESOURCES,
                argument.value,
                f"{self.arguments.text(argument)} must be a dictionary: v2 takes nothing else",
            )
        return [self.arguments.part("resources_per_node", argument)]

    def _requirements(self, argument: Argument, call: cst.Call) -> list[Part]:
        """V1ResourceRequirements: v2 has one dictionary for requests and limits."""
        given = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
        limits, requests = given.get("limits"), given.get("requests")
        source = limits or requests
        if source is None or len(given) != len(call.args) or given.keys() - {"limits", "requests"}:
            self.script.source.mark(
                codes.RESOURCES,
                self.call,
                f"{self.arguments.text(argument)} is no dictionary, and v2 takes nothing else",
                "write the amounts of a pod as a dictionary",
                Severity.WARNING,
            )
            return [self.arguments.part("resources_per_node", argument)]
        text = self.script.text(source)
        if limits is not None and requests is not None and self.script.literal(limits) != self.script.literal(requests):
            self.script.source.mark(
                codes.RESOURCES,
                self.call,
                f"the requests {self.script.text(requests)} are gone: v2 asks for what it limits ({text})",
                "what a queue counts changes with it; a TrainJob of its own can have both",
                Severity.WARNING,
            )
        elif limits is None or requests is None:
            self.script.note(codes.RESOURCES, argument.value, "the amounts are requests and limits now")
        return [self.arguments.part("resources_per_node", argument, text)]

    def env(self) -> list[Part]:
        argument = self.arguments.take("env_vars")
        if argument is None:
            return []
        script = self.script
        behind = script.names.value_of(argument.value)
        if isinstance(behind, cst.Dict):
            return [self.arguments.part("env", argument)]
        if isinstance(behind, (cst.List, cst.Tuple)):
            items = self._env_items([e.value for e in behind.elements])
            if items is not None:
                part = self.arguments.part("env", argument)
                return [Part("env", Group("{", items, "}"), part.lead, part.trail)]
        script.source.mark(
            codes.ARGUMENT,
            self.call,
            f"env_vars={self.arguments.text(argument)} is not a dictionary of texts, and CustomTrainer takes "
            "nothing else",
            "values from Secrets, ConfigMaps and fields belong into a runtime, or into a TrainJob of its own",
            Severity.WARNING if behind is None or not isinstance(behind, (cst.List, cst.Tuple)) else Severity.ERROR,
        )
        return [self.arguments.part("env", argument)]

    def _env_items(self, values: list[cst.BaseExpression]) -> list[Part] | None:
        items = []
        for value in values:
            behind = self.script.names.value_of(value)
            if not isinstance(behind, cst.Call) or not any(
                q.endswith(".V1EnvVar") for q in self.script.names.qualified(behind.func)
            ):
                return None
            given = {a.keyword.value: a.value for a in behind.args if a.keyword is not None}
            if set(given) != {"name", "value"}:
                return None
            items.append(Part(self.script.text(given["name"]), self.script.text(given["value"]), separator=": "))
        return items

    def devices(self, resources: Argument | None) -> tuple[int | None, int]:
        """GPUs and CPUs (rounded up) that a pod asks for; (None, 0) when that does not stand in the text."""
        if resources is None:
            return 0, 0
        values = self._resource_values(resources)
        if values is None:
            return None, 0
        gpus = [v for k, v in values.items() if "gpu" in k.lower()]
        try:
            return sum(int(str(v)) for v in gpus), (quantity.whole_up(values["cpu"]) if "cpu" in values else 0)
        except ValueError:
            return None, 0

    def names_gpu(self, resources: Argument | None) -> bool:
        """Whether a GPU is among the resources, in any amount (Trainer 2.3 torch.go looks at the name only)."""
        values = self._resource_values(resources) if resources is not None else None
        return any("gpu" in k.lower() for k in values or {})
