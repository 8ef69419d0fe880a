"""Streams of documents in, streams of documents out: nothing disappears on the way.

A document without a v1 job passes through byte for byte, without being parsed. A job that is
refused stays in its document as it was; a file in which nothing was converted gives no output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trainjob import emit
from trainjob.findings import Finding, Location, Report, Severity
from trainjob.kube import yaml
from trainjob.kube.yaml import Document
from trainjob.migrate import codes
from trainjob.migrate.document import DocumentResult, Record, migrate_document, unreadable
from trainjob.migrate.job import Options
from trainjob.migrate.locate import MARK
from trainjob.migrate.wrappers import metadata_of
from trainjob.targets import DEFAULT, Target


@dataclass(frozen=True, slots=True)
class Migration:
    """The outcome for one input. `text` is empty when nothing was converted."""

    documents: list[str]
    findings: tuple[Finding, ...]
    converted: int
    refused: int
    jobs: tuple[emit.TrainJob, ...] = field(default=(), repr=False)
    # Every job that was found, also the refused ones.
    records: tuple[Record, ...] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        return join(self.documents)

    @property
    def exit_code(self) -> int:
        return Report(self.findings).exit_code(Severity.WARNING)


def migrate_text(
    text: str | bytes, *, file: str = "<stdin>", target: Target = DEFAULT, options: Options | None = None
) -> Migration:
    """Migrate a whole text. Never raises for bad input: that is a finding.

    A file that cannot be read as a whole (exit code 2) gives no output at all.
    """
    results: list[DocumentResult] = []
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as err:
            return Migration([], (not_text(file, err),), 0, 0)
    try:
        documents = list(yaml.split(text, file))
        scripts = script_maps(documents)
        results = [migrate_document(doc, options or Options(target), scripts) for doc in documents]
    except yaml.YamlError as err:
        return Migration([], (unreadable(err),), 0, 0)
    tally = Tally()
    for result in results:
        tally.add(result)
    findings = [f for r in results for f in r.findings]
    if tally.nothing:
        findings.append(no_job(Location(file, 1, 1), migrated=tally.migrated))
    parts = [p for r in results for p in r.parts] if tally.has_output else []
    jobs = tuple(j for r in results for j in r.jobs) if tally.converted else ()
    records = tuple(record for r in results for record in r.records)
    return Migration(parts, tuple(findings), tally.converted, tally.refused, jobs, records)


@dataclass(slots=True)
class Tally:
    """Counts over the documents of one input, and whether the input gives output."""

    documents: int = 0
    rewritten: int = 0
    refused: int = 0
    migrated: bool = False
    unreadable: bool = False

    def add(self, result: DocumentResult) -> None:
        self.documents += 1
        self.rewritten += result.converted
        self.refused += result.refused
        self.migrated = self.migrated or "kind: TrainJob" in result.document.text
        self.unreadable = self.unreadable or any(f.unreadable for f in result.findings)

    @property
    def converted(self) -> int:
        """Jobs that are converted in the output: none when the input cannot be read to its end."""
        return 0 if self.unreadable else self.rewritten

    @property
    def nothing(self) -> bool:
        """No job was found, converted or refused."""
        return not (self.converted or self.refused or self.unreadable)

    @property
    def has_output(self) -> bool:
        return not self.unreadable and (self.converted > 0 or (self.nothing and self.migrated))


class Joiner:
    """Writes documents as one stream. Passed-through texts bring their own `---`, others get it."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._last: str | None = None

    def add(self, text: str) -> None:
        if self._last is not None:
            if not self._last.endswith("\n"):
                self._write("\n")
            if not text.startswith("---"):
                self._write("---\n")
        self._write(text)
        self._last = text


def join(documents: list[str]) -> str:
    """Several documents as one stream."""
    out: list[str] = []
    joiner = Joiner(out.append)
    for text in documents:
        joiner.add(text)
    return "".join(out)


def no_job(where: Location, *, migrated: bool) -> Finding:
    """The finding for an input without a v1 job."""
    if migrated:
        return Finding(codes.NO_JOB, Severity.NOTE, "there are TrainJobs and no v1 job: already migrated", where)
    return Finding(
        codes.NO_JOB,
        Severity.ERROR,
        "there is no v1 training job in the input",
        where,
        "give a file that holds a PyTorchJob, JAXJob, XGBoostJob or MPIJob of kubeflow.org/v1",
    )


def not_text(name: str, err: UnicodeDecodeError) -> Finding:
    """The finding for a file that is no UTF-8 text."""
    return Finding(
        codes.YAML_ERROR,
        Severity.ERROR,
        f"not UTF-8 text (byte 0x{err.object[err.start]:02x}): is it a binary file?",
        Location(name),
        "give YAML or JSON text in UTF-8",
        unreadable=True,
    )


def script_maps(documents: list[Document], *, force: bool = False) -> dict[str, dict[str, str]]:
    """ConfigMaps of the stream that hold scripts, for the rules that read them.

    Without a job in these documents there is nothing to do, unless `force` says that one may follow.
    """
    out: dict[str, dict[str, str]] = {}
    if not force and not any(MARK.search(d.text) for d in documents):
        return out
    for doc in documents:
        if "ConfigMap" not in doc.text or MARK.search(doc.text):
            continue
        try:
            data = yaml.parse(Document(doc.file, doc.index, doc.text, doc.first_line)).data
        except yaml.YamlError:
            continue
        if isinstance(data, Mapping) and data.get("kind") == "ConfigMap" and isinstance(data.get("data"), Mapping):
            name = metadata_of(data).get("name")
            if name:
                out[str(name)] = {k: v for k, v in data["data"].items() if isinstance(v, str)}
    return out
