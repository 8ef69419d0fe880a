"""Streams: which runtime a TrainJob gets, and what is passed over."""

from __future__ import annotations

from typing import Any

from tests.validate.objects import NODE, REMOVE, Obj, put, runtime, trainjob
from trainjob.findings import Location
from trainjob.kube import yaml
from trainjob.kube.schema import Path
from trainjob.targets import DEFAULT
from trainjob.validate import check_documents

WITHOUT_IMAGE = put(trainjob(DEFAULT), "spec.trainer.image", REMOVE)
NAKED = put(runtime(DEFAULT), f"{NODE}.image", REMOVE)


def codes(*docs: Any, catalogue: dict[str, Obj] | None = None) -> list[tuple[str, str]]:
    return [(f.subject, f.code) for f in check_documents(docs, DEFAULT, catalogue)]


def refer(kind: str, namespace: str = "team") -> Obj:
    return put(put(WITHOUT_IMAGE, "spec.runtimeRef.kind", kind), "metadata.namespace", namespace)


def test_the_stream_comes_before_the_catalogue() -> None:
    assert codes(WITHOUT_IMAGE, runtime(DEFAULT), catalogue={"fine": NAKED}) == []
    assert codes(WITHOUT_IMAGE, catalogue={"fine": NAKED}) == [("TrainJob/demo", "TJ532")]
    assert codes(WITHOUT_IMAGE, catalogue={"fine": runtime(DEFAULT)}) == []


def test_the_last_of_two_runtimes_counts() -> None:
    found = codes(NAKED, WITHOUT_IMAGE, runtime(DEFAULT))
    assert found == [("ClusterTrainingRuntime/fine", "TJ532")]


def test_a_namespaced_runtime_is_looked_for_in_its_namespace() -> None:
    own = put(runtime(DEFAULT, kind="TrainingRuntime"), "metadata.namespace", "team")
    assert codes(own, refer("TrainingRuntime")) == []
    assert codes(put(own, "metadata.namespace", REMOVE), refer("TrainingRuntime")) == []
    for stream in ([own, refer("TrainingRuntime", "other")], [runtime(DEFAULT), refer("TrainingRuntime")]):
        assert codes(*stream, catalogue={"fine": runtime(DEFAULT)}) == [("TrainJob/demo", "TJ511")]


def test_a_runtime_that_is_not_there() -> None:
    (finding,) = check_documents(
        [put(WITHOUT_IMAGE, "spec.runtimeRef.name", "fin")], DEFAULT, {"fine": runtime(DEFAULT)}
    )
    assert (finding.code, finding.fix) == ("TJ511", 'did you mean "fine"?')
    assert finding.where is not None
    assert finding.where.path == "spec.runtimeRef.name"


def test_an_unknown_kind_is_not_looked_for() -> None:
    assert codes(refer("Runtime")) == [("TrainJob/demo", "TJ510")]


def test_other_kinds_are_passed_over() -> None:
    assert codes({"kind": "ConfigMap"}, {}, {"kind": "TrainJob", "apiVersion": "other.io/v1"}, {"kind": ["x"]}) == []


def test_a_list_is_opened() -> None:
    items = [runtime(DEFAULT), put(trainjob(DEFAULT), "spec.trainer.numNodes", 0), None]
    (finding,) = check_documents([{"kind": "List", "items": items}], DEFAULT)
    assert finding.where is not None
    assert (finding.code, finding.where.path) == ("TJ516", "items[1].spec.trainer.numNodes")


class Document:
    """What the loader gives, as far as the checks need it."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def locate(self, path: Path) -> Location:
        return Location("jobs.yaml", 9, 2, yaml.dotted(path))


def test_documents_say_where() -> None:
    (finding,) = check_documents(
        [Document(None), Document(put(trainjob(DEFAULT), "spec.trainer.numNodes", 0))],
        DEFAULT,
        {"fine": runtime(DEFAULT)},
    )
    assert str(finding.where) == "jobs.yaml:9:2"


def test_yaml_documents() -> None:
    text = yaml.dump_all([runtime(DEFAULT), put(trainjob(DEFAULT), "spec.trainer.numNodes", 0)])
    (finding,) = check_documents(yaml.load(text, "jobs.yaml"), DEFAULT)
    assert finding.where is not None
    line = text.splitlines()[finding.where.line - 1]
    assert line.strip() == "numNodes: 0"
