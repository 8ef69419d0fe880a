"""What every check gets: the object, its target, and a way to make findings with a place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainjob.findings import Finding, Location
from trainjob.kube import schema
from trainjob.kube.schema import Path
from trainjob.targets import Target
from trainjob.validate import view
from trainjob.validate.codes import BY_CODE
from trainjob.validate.merge import Merged, merge

Locate = Callable[[Path], Location]


def path_only(path: Path) -> Location:
    """A location in an object that comes from no file."""
    from trainjob.kube.yaml import dotted

    return Location("", path=dotted(path))


@dataclass(slots=True)
class Case:
    """An object under check. Derived parts are worked out once, when first asked for."""

    obj: Mapping[str, Any]
    kind: str
    target: Target
    runtime: Mapping[str, Any] | None = None
    locate: Locate = path_only
    trainer: Mapping[str, Any] = field(init=False)
    policy: str = field(init=False, default="")
    _merged: tuple[Merged, ...] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.trainer = view.mapping(view.dig(self.obj, "spec", "trainer"))
        if self.runtime is not None:
            self.policy = view.policy(self.runtime)

    @property
    def merged(self) -> tuple[Merged, ...]:
        """The replicatedJobs that come out of the TrainJob and its runtime; empty without runtime."""
        if self._merged is None:
            self._merged = () if self.runtime is None else merge(self.obj, self.runtime, self.target)
        return self._merged

    def find(self, code: str, path: Path, message: str, fix: str = "") -> Finding:
        """A finding of this check at this path of the object."""
        name = view.text(view.dig(self.obj, "metadata", "name"))
        if not name:
            name = view.text(view.dig(self.obj, "metadata", "generateName")) + "*"
        subject = f"{self.kind}/{name}"
        return Finding(code, BY_CODE[code].severity, message, self.locate(path), fix, subject)


Checker = Callable[[Case], Iterator[Finding]]

_CODE_OF_RULE = {"unknown-field": "TJ502", "duplicate": "TJ503", "cel": "TJ504"}


def check_schema(case: Case) -> Iterator[Finding]:
    """TJ501 to TJ504 and TJ546: what the API server checks with the CRD alone."""
    for bad in schema.check(case.obj, case.kind, case.target):
        code = _CODE_OF_RULE.get(bad.rule, "TJ501")
        message, fix = bad.message, bad.fix
        if code == "TJ503" and case.kind == "TrainJob" and "volumeMounts" in bad.path:
            volume = view.text(_at(case.obj, bad.path))
            code, message = "TJ546", f'volume "{volume}" is mounted twice in one patch of a container'
            fix = "add a second volume with the same source, or mount both places in a runtime"
        yield case.find(code, bad.path, message, fix)


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value
