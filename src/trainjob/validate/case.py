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
from trainjob.validate.view import Job, PodPatch

Locate = Callable[[Path], Location]


def path_only(path: Path) -> Location:
    """A location in an object that comes from no file."""
    from trainjob.kube.yaml import dotted

    return Location("", path=dotted(path))


@dataclass(slots=True)
class Case:
    """An object under check, with the parts of it that several checks look at."""

    obj: Mapping[str, Any]
    kind: str
    target: Target
    runtime: Mapping[str, Any] | None = None
    locate: Locate = path_only
    # Of a TrainJob: its spec.trainer, patches and merge. `jobs` and `policy` are the runtime's,
    # which is `obj` itself when a runtime is checked.
    trainer: Mapping[str, Any] = field(init=False)
    policy: str = field(init=False, default="")
    jobs: tuple[Job, ...] = field(init=False, default=())
    patches: tuple[PodPatch, ...] = field(init=False, default=())
    merged: tuple[Merged, ...] = field(init=False, default=())
    # False when the object is no mapping or holds values that JSON does not know.
    plain: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        is_job = self.kind == "TrainJob"
        runtime = self.runtime if is_job else self.obj
        self.trainer = view.mapping(view.dig(self.obj, "spec", "trainer")) if is_job else {}
        if is_job:
            self.patches = tuple(view.pod_patches(self.obj, self.target))
        if runtime is not None:
            self.policy = view.policy(runtime)
            self.jobs = view.jobs(runtime)
        if is_job and runtime is not None:
            self.merged = merge(self.obj, runtime, self.target, self.jobs, self.patches)

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
        if not bad.path and bad.rule == "type":
            case.plain = False
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
