"""One document: find its jobs, convert each in its place, keep everything else byte for byte."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainjob import emit
from trainjob.findings import Finding, Location, Severity
from trainjob.kube import yaml
from trainjob.kube.yaml import Document, Path
from trainjob.migrate import codes, embedded, origin, placeholders, wrappers
from trainjob.migrate.job import JobResult, Options, Source, migrate_job
from trainjob.migrate.kinds.instead import INSTEAD, MPI_OPERATOR, REASONS
from trainjob.migrate.kinds.registry import CONVERTED
from trainjob.migrate.locate import MARK, OTHER_V1, Holder, Site, sites
from trainjob.migrate.origin import FieldOrigin
from trainjob.migrate.provenance import trace
from trainjob.v1.kinds import MPI

# Up to the `---` line; or, in a file without one, the comments at its top.
_HEAD = re.compile(r"(?:[ \t]*(?:[#%][^\n]*)?\n)*---[ \t]*(?:#[^\n]*)?\n|#[^\n]*\n(?:[ \t]*(?:#[^\n]*)?\n)*")
Scripts = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Record:
    """One v1 job that was found, and what became of it: `job` is None when it is refused.

    `text` is its own part of the input, which starts at `first_line` of the file; `data` is what was
    read there. `fields` is filled only with `Options.explain`.
    """

    where: Location
    text: str
    first_line: int
    data: Any = None
    job: emit.TrainJob | None = None
    findings: tuple[Finding, ...] = ()
    fields: tuple[FieldOrigin, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """What became of one document. `parts` is its output: the text, or several documents."""

    document: Document
    parts: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    converted: int = 0
    refused: int = 0
    jobs: tuple[emit.TrainJob, ...] = ()
    records: tuple[Record, ...] = ()


def unreadable(err: yaml.YamlError) -> Finding:
    """A YamlError as a finding."""
    return Finding(codes.YAML_ERROR, Severity.ERROR, err.message, err.where, err.fix, unreadable=True)


def migrate_document(doc: Document, options: Options, scripts: Scripts, file: str | None = None) -> DocumentResult:
    """Migrate the jobs of one document that `split` gave. `file`: how the output names its source."""
    if not MARK.search(doc.text):
        return DocumentResult(doc, (doc.text,), tuple(_other_kinds(doc)))
    try:
        yaml.parse(doc)
    except yaml.YamlError as err:
        finding = _broken(doc, err)
        record = Record(finding.where or Location(doc.file, doc.first_line, 1), doc.text, doc.first_line)
        return DocumentResult(doc, (doc.text,), (finding,), refused=1, records=(replace(record, findings=(finding,)),))
    if doc.data is None:
        return DocumentResult(doc, (doc.text,))
    found = sites(doc)
    if not found:
        return DocumentResult(doc, (doc.text,), tuple(_other_kinds(doc)))
    return _Work(doc, options, scripts, file or origin.shown(doc.file)).run(found)


def _other_kinds(doc: Document) -> Iterator[Finding]:
    for match in OTHER_V1.finditer(doc.text):
        line = doc.text.count("\n", 0, match.start(1)) + doc.first_line
        yield Finding(
            codes.OTHER_API,
            Severity.WARNING,
            f"a {match[1]} is not converted and passes through as it is",
            Location(doc.file, line, 1),
            "there is neither an apiVersion nor a spec: is it a job at all?",
        )


def _broken(doc: Document, err: yaml.YamlError) -> Finding:
    line = placeholders.first_template_line(doc.text)
    if line is None:
        return unreadable(err)
    return Finding(
        codes.PLACEHOLDER,
        Severity.ERROR,
        "this is a Helm or Jinja template, not YAML "
        f"({err.message.removeprefix('YAML error: ')} at line {err.where.line})",
        Location(doc.file, doc.first_line + line, 1),
        "render it first, for example with `helm template`; no value is guessed",
        unreadable=True,
    )


def excerpt(doc: Document, site: Site) -> tuple[str, int]:
    """The part of the document that holds the job, and its first line in the file.

    The line is 0 where lines of the excerpt are no lines of the file: in a quoted text, and for a job that shares
    its line with others, as in JSON of one line, which is written anew.
    """
    if not site.path:
        return doc.text, doc.first_line
    if site.holder is Holder.TEXT:
        text = embedded.text_at(doc, site.path)
        if text is None:
            return str(site.data), 0
        return text.node.value, text.first_line if text.node.style == "|" else 0
    node = doc.find(site.path)
    if node is None or node.start_mark is None or node.end_mark is None or node.start_mark.line == node.end_mark.line:
        return yaml.dump(site.data), 0
    start, end = node.start_mark, node.end_mark
    lines = doc.text.splitlines(keepends=True)
    # A block ends where the next one starts, which may be an indented line of its own.
    ends_in_line = end.line < len(lines) and bool(lines[end.line][: end.column].strip())
    lines = lines[start.line : end.line + (1 if ends_in_line else 0)]
    lines[0] = " " * start.column + lines[0][start.column :]
    return textwrap.dedent("".join(lines)), doc.first_line + start.line


class _Work:
    """The conversion of one document."""

    def __init__(self, doc: Document, options: Options, scripts: Scripts, file: str) -> None:
        self.doc, self.options, self.scripts, self.file = doc, options, scripts, file
        self.findings: list[Finding] = []
        self.records: list[Record] = []
        self.jobs: list[emit.TrainJob] = []
        self.refused = 0

    def run(self, found: list[Site]) -> DocumentResult:
        self._duplicates()
        if any(s.holder is Holder.LIST for s in found):
            parts = self._list(found)
        elif all(s.holder is Holder.TEXT for s in found):
            parts = self._texts(found)
        elif len(found) == 1 and found[0].holder is Holder.DOCUMENT:
            parts = self._document(found[0])
        else:
            parts = self._wrapped(found)
        if self.jobs and self.doc.comments(len(self._head)) and not all(s.holder is Holder.TEXT for s in found):
            self._comments(())
        return DocumentResult(
            self.doc,
            parts if self.jobs else (self.doc.text,),
            tuple(self.findings),
            len(self.jobs),
            self.refused,
            tuple(self.jobs),
            tuple(self.records),
        )

    def _say(self, code: str, severity: Severity, path: Path, message: str, fix: str = "") -> None:
        self.findings.append(Finding(code, severity, message, self.doc.locate(path), fix))

    def _comments(self, path: Path) -> None:
        what = "text" if path else "document"
        self._say(
            codes.COMMENTS,
            Severity.NOTE,
            path,
            f"the {what} is written anew; its comments are not kept",
            "keep the original beside it, or copy the comments",
        )

    def _duplicates(self) -> None:
        for dup in self.doc.duplicates:
            self.findings.append(
                Finding(
                    codes.DUPLICATE_KEY,
                    Severity.WARNING,
                    f"the key {dup.key!r} stands twice (first in line {dup.first_line}); the last one holds, as for "
                    "kubectl",
                    dup.where,
                    "remove one of them",
                )
            )

    def _refuse(self, code: str, site: Site, path: Path, message: str, fix: str) -> None:
        self.refused += 1
        self._say(code, Severity.ERROR, path, message, fix)
        self._record(site, self.findings[-1:])

    def _record(
        self, site: Site, findings: Sequence[Finding], where: Location | None = None, result: JobResult | None = None
    ) -> None:
        """Keep what a report says of one job."""
        text, line = excerpt(self.doc, site)
        where = where or self.doc.locate(site.path)
        job, fields = (None, ()) if result is None else (result.job, result.fields)
        self.records.append(Record(where, text, line, site.data, job, tuple(findings), fields))

    def _convert(
        self,
        site: Site,
        locate: Callable[[Path], Location] | None = None,
        text: Callable[[Path], str | None] | None = None,
    ) -> JobResult | None:
        """One job, or None when it is refused (with a finding)."""
        version = site.api_version
        if site.kind is MPI and version == MPI_OPERATOR:
            at = (*site.path, "apiVersion") if locate is None else site.path
            self._refuse(codes.NO_RUNTIME, site, at, REASONS[MPI_OPERATOR], INSTEAD[MPI_OPERATOR])
            return None
        if not site.known:
            self._refuse(
                codes.OTHER_API,
                site,
                (*site.path, "apiVersion") if locate is None else site.path,
                f"apiVersion {version!r} is not kubeflow.org/v1: this {site.kind.name} belongs to another controller "
                "or an older one",
                "migrate it to kubeflow.org/v1 first" if version.startswith("kubeflow.org/") else "ask its owner",
            )
            return None
        if site.kind.name not in CONVERTED:
            at = (*site.path, "kind") if locate is None else site.path
            self._refuse(
                codes.NO_RUNTIME, site, at, f"{site.kind.one}: {REASONS[site.kind.name]}", INSTEAD[site.kind.name]
            )
            return None
        base = site.path
        source = Source(
            locate or (lambda p: self.doc.locate((*base, *p))),
            text or (lambda p: self.doc.source((*base, *p))),
            template=site.holder in (Holder.KATIB, Holder.TEXT),
            scripts=self.scripts,
        )
        where = source.locate(())
        source.origin = origin.annotations_for(self.doc, self.file, where.line, site.data)
        result = migrate_job(site.data, source, self.options)
        if self.options.explain and result.job is not None:
            result = replace(result, fields=trace(site.data, source, self.options, result.job))
        self.findings.extend(result.findings)
        self._record(site, result.findings, where, result)
        if result.job is None:
            self.refused += 1
            return None
        self.jobs.append(result.job)
        return result

    def _document(self, site: Site) -> tuple[str, ...]:
        result = self._convert(site)
        if result is None or result.job is None:
            return (self.doc.text,)
        return self._with_head([yaml.dump(o) for o in result.job.objects()])

    @property
    def _head(self) -> str:
        """The comments at the top, with the `---` line: they belong to no value."""
        head = _HEAD.match(self.doc.text)
        return head[0] if head else ""

    def _with_head(self, parts: list[str]) -> tuple[str, ...]:
        return (f"{self._head}{parts[0]}", *parts[1:])

    def _list(self, found: list[Site]) -> tuple[str, ...]:
        """A List becomes a stream of its items, in order."""
        by_index = {s.path[1]: s for s in found if s.holder is Holder.LIST}
        for other in found:
            if other.holder is Holder.TEXT:
                self._job_in_text(other, self.doc.data["kind"])
            elif other.holder is not Holder.LIST:
                self._unknown(other)
        parts: list[str] = []
        for i, item in enumerate(wrappers.listed(self.doc.data)):
            site = by_index.get(i)
            result = self._convert(site) if site is not None else None
            objects = result.job.objects() if result is not None and result.job is not None else [item]
            parts += [yaml.dump(o) for o in objects]
        if self.jobs:
            self._say(
                codes.WRAPPER_EDIT, Severity.NOTE, (), f"the {self.doc.data['kind']} becomes a stream of its items"
            )
        return self._with_head(parts)

    def _unknown(self, site: Site) -> None:
        root = self.doc.data
        holder = f"{root.get('kind')} of {root.get('apiVersion')}" if isinstance(root, Mapping) else "list"
        self._refuse(
            codes.WRAPPER,
            site,
            site.path,
            f"{site.kind.one} stands inside a {holder}, at {yaml.dotted(site.path)}; migrate does not know this kind "
            "and leaves it untouched",
            "take the job out, migrate it, and put the TrainJob back if the kind can hold one",
        )

    def _wrapped(self, found: list[Site]) -> tuple[str, ...]:
        """A Katib Experiment or AppWrapper: the job is replaced in its place."""
        root: dict[str, Any] = self.doc.data
        before: list[str] = []
        for site in found:
            if site.holder not in (Holder.KATIB, Holder.APPWRAPPER):
                self._unknown(site)
                continue
            result = self._convert(site)
            if result is None or result.job is None:
                continue
            if result.job.runtime is not None:
                before.append(yaml.dump(self._in_namespace(result.job.runtime)))
            root = wrappers.put(root, site.path, result.job.to_dict())
            root, edits = wrappers.edit(root, site, result.nodes, self.doc)
            self.findings.extend(edits)
            self.records[-1] = replace(self.records[-1], findings=(*self.records[-1].findings, *edits))
        return self._with_head([*before, yaml.dump(root)])

    def _in_namespace(self, runtime: Mapping[str, Any]) -> Mapping[str, Any]:
        namespace = wrappers.metadata_of(self.doc.data).get("namespace")
        metadata = dict(runtime["metadata"])
        if namespace and "namespace" not in metadata:
            metadata = {"name": metadata.pop("name"), "namespace": namespace, **metadata}
        return {**runtime, "metadata": metadata}

    def _texts(self, found: list[Site]) -> tuple[str, ...]:
        """Jobs in texts of a ConfigMap. The first converted text is replaced, then the rest is redone."""
        before: list[str] = []
        current = self.doc
        for site in found:
            kind = self.doc.data.get("kind") if isinstance(self.doc.data, Mapping) else None
            if kind != "ConfigMap" or len(site.path) != 2 or site.path[0] not in ("data", "binaryData"):
                self._job_in_text(site, kind)
                continue
            text = embedded.text_at(current, site.path)
            if text is None or sum(1 for _ in yaml.split(text.node.value)) > 1:
                self._job_in_text(site, kind)
                continue
            try:
                inner = embedded.parse_inner(text)
            except yaml.YamlError as err:
                self.refused += 1
                self.findings.append(unreadable(err))
                self._record(site, self.findings[-1:])
                continue
            inner_sites = sites(inner) if inner.data is not None else []
            if len(inner_sites) != 1 or inner_sites[0].path:
                self._job_in_text(site, kind)
                continue
            before_edits = embedded.text_at(self.doc, site.path) or text
            inner_site = Site(Holder.TEXT, site.path, inner.data)
            result = self._convert(inner_site, before_edits.locate(inner), inner.source)
            if result is None or result.job is None:
                continue
            new = embedded.like(text.node.value, result.job.to_dict())
            replaced = embedded.replace(current, text, new)
            following = Document(current.file, current.index, replaced, current.first_line)
            if not embedded.written(following, site.path, new):  # an anchor that is used elsewhere
                self.jobs.pop()
                self.records.pop()
                self._job_in_text(site, kind)
                continue
            current = following
            if result.job.runtime is not None:
                before.append(yaml.dump(self._in_namespace(result.job.runtime)))
            if inner.comments():
                self._comments(site.path)
            self._say(
                codes.WRAPPER_EDIT,
                Severity.NOTE,
                site.path,
                f"the job in {yaml.dotted(site.path)} is rewritten in its place",
            )
        return (*before, current.text)

    def _job_in_text(self, site: Site, kind: Any) -> None:
        holder = f"a {kind}" if kind else "a file that is no Kubernetes object"
        self._refuse(
            codes.JOB_IN_TEXT,
            site,
            site.path,
            f"{site.kind.one} stands as text in {holder}, under {yaml.dotted(site.path)}; it is left untouched",
            "take the text out into a file of its own and migrate that",
        )
        where = self.doc.locate(site.path)
        self.findings += [placeholders.unfilled(p, where) for p in placeholders.find({"text": site.data})]
