"""Before and after, followed by origin: what each line of both texts is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.support import CASES, EXAMPLE, REFUSED, of_files
from trainjob.kube.yaml import dump_all
from trainjob.migrate import migrate_text
from trainjob.report.diff import Change, Line, after, before
from trainjob.report.model import JobView


def job_of(path: Path, index: int = 0) -> JobView:
    return of_files(path).jobs[index]


def one(lines: list[Line], text: str) -> Line:
    (found,) = [line for line in lines if text in line.text]
    return found


def test_what_was_dropped_and_what_was_kept() -> None:
    job = job_of(EXAMPLE)
    lines = before(job.record, job.findings)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert one(lines, "cleanPodPolicy").change is Change.GONE
    assert one(lines, "imagePullPolicy").change is Change.GONE
    assert one(lines, "image: registry").change is Change.KEPT
    assert one(lines, "mountPath: /output").change is Change.KEPT
    assert one(lines, "# queue whose quota").change is Change.PLAIN
    assert [f.code for f in one(lines, "ttlSecondsAfterFinished").findings] == ["TJ405"]


def test_what_is_new_and_where_the_rest_is_from() -> None:
    lines = after(job_of(EXAMPLE).record)
    assert one(lines, "numNodes: 3") == Line(18, "    numNodes: 3", Change.CHANGED, (16, 45))
    image = "    image: registry.example.com/nlp/sft:2.4.1"
    assert one(lines, "image: registry") == Line(19, image, Change.KEPT, (25,))
    assert one(lines, "name: torch-v1-compat-multinode").change is Change.NEW
    assert one(lines, "claimName: sft-output").origin == (41,)


@pytest.mark.parametrize("path", sorted(CASES.glob("*/before.*")), ids=lambda p: p.parent.name)
def test_all_lines_of_both_texts_are_there_in_order(path: Path) -> None:
    source = path.read_text(encoding="utf-8").splitlines()
    for job in of_files(path).jobs:
        left = before(job.record, job.findings)
        assert [line.text for line in left] == job.record.text.splitlines()
        for i, line in enumerate(left):
            if line.number:
                theirs = source[line.number - 1].strip()
                assert line.text.strip() in (theirs, theirs.removeprefix("- ") if i == 0 else theirs)
        right = after(job.record)
        wanted = dump_all(job.record.job.objects()) if job.record.job is not None else ""
        assert [line.text for line in right] == wanted.splitlines()
        assert [line.number for line in right] == list(range(1, len(right) + 1))
        assert all(0 < n <= len(source) for line in right for n in line.origin)
        if job.record.job is not None:
            assert any(line.change is Change.KEPT for line in left), "nothing of the job is in the output?"
            assert any(line.change is Change.KEPT for line in right)


def test_a_kept_image_stands_on_the_lines_that_it_names() -> None:
    seen = 0
    for path in sorted(CASES.glob("*/before.yaml")):
        source = path.read_text(encoding="utf-8").splitlines()
        for job in of_files(path).jobs:
            for line in after(job.record):
                text = line.text.strip().removeprefix("- ")
                if line.change is Change.KEPT and line.origin and text.startswith("image: "):
                    seen += 1
                    assert any(text.removeprefix("image: ").strip("\"'") in source[n - 1] for n in line.origin)
    assert seen > 30


def test_every_line_of_a_script_has_its_state() -> None:
    record = job_of(CASES / "26-appwrapper-heredoc-torchrun" / "before.yaml").record
    lines = after(record)
    start = next(i for i, line in enumerate(lines) if "mktemp" in line.text)
    assert "cat >" in lines[start + 1].text
    assert {line.change for line in lines[start : start + 3]} == {Change.KEPT}


def test_a_refused_job_has_a_before_only() -> None:
    job = job_of(REFUSED)
    assert after(job.record) == []
    lines = before(job.record, job.findings)
    assert {line.change for line in lines} == {Change.PLAIN}
    assert any("TJ203" in [f.code for f in line.findings] for line in lines)


def test_without_origins_nothing_is_called_kept_or_gone() -> None:
    (record,) = migrate_text(EXAMPLE.read_bytes()).records
    assert {line.change for line in before(record, ())} == {Change.PLAIN}
    assert {line.change for line in after(record)} == {Change.PLAIN}
