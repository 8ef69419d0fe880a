"""Sums and groups of a review."""

from __future__ import annotations

from tests.report.support import CASES, EXAMPLE, REFUSED, of_cases, of_files, review
from trainjob.findings import Severity
from trainjob.migrate import migrate_text
from trainjob.report.model import HELD, MIGRATED, JobView, views
from trainjob.report.model import REFUSED as REFUSED_STATE

TWO = CASES / "32-live-list-dump" / "before.yaml"


def test_jobs_of_all_cases_are_counted_as_the_migration_does() -> None:
    found = of_cases()
    assert found.migrated == 54
    assert found.migrated + found.refused == len(found.jobs)
    assert found.counts["error"] == sum(len(c.findings) for c in found.causes(Severity.ERROR))


def test_a_refused_job_has_its_reason_and_no_output() -> None:
    (job,) = of_files(REFUSED).jobs
    assert (job.state, job.after, job.text_after) == (REFUSED_STATE, None, "")
    assert any(f.severity is Severity.ERROR for f in job.findings)


def test_a_job_of_a_file_that_gives_no_output_is_held_back() -> None:
    result = migrate_text(EXAMPLE.read_bytes())
    (job,) = views(result.records, result.findings, held=True)
    assert (job.state, job.after) == (HELD, None)
    assert job.text_after


def test_the_queue_of_a_job() -> None:
    (job,) = of_files(EXAMPLE).jobs
    assert (job.queue, job.label, job.state) == ("nlp-queue", "nlp/llama-sft", MIGRATED)


def test_causes_have_one_fix_each_and_name_their_jobs() -> None:
    found = of_cases()
    for severity in Severity:
        for cause in found.causes(severity):
            assert {f.code for f in cause.findings} == {cause.code}
            assert all(any(f in found.jobs[i].findings for f in cause.findings) for i in cause.jobs)
    blockers = found.causes(Severity.ERROR)
    assert [len(c.jobs) for c in blockers] == sorted((len(c.jobs) for c in blockers), reverse=True)
    rank = [c for c in blockers if c.code == "TJ203"]
    assert len({c.fix for c in rank}) == len(rank) == 2


def test_names_and_numbers_do_not_split_a_cause() -> None:
    text = REFUSED.read_text(encoding="utf-8")
    found = review([("a.yaml", text), ("b.yaml", text)])
    (cause,) = found.causes(Severity.ERROR)
    assert cause.jobs == (0, 1)


def test_findings_of_a_document_with_several_jobs_belong_to_none() -> None:
    found = of_files(TWO)
    assert len(found.jobs) > 1
    loose = {f.code for f in found.loose()}
    assert "TJ914" in loose
    assert len(found.loose()) + sum(len(j.findings) for j in found.jobs) == len(found.findings)


def test_findings_of_a_single_job_are_all_told_with_it() -> None:
    assert of_files(EXAMPLE).loose() == []


def test_queues_sum_what_v1_ran_and_what_is_written() -> None:
    example = EXAMPLE.read_text(encoding="utf-8")
    other = example.replace("name: llama-sft", "name: llama-two").replace("nlp-queue", "other-queue")
    refused = REFUSED.read_text(encoding="utf-8")
    found = review(
        [("a.yaml", example), ("b.yaml", other), ("c.yaml", other.replace("two", "three")), ("d.yaml", refused)]
    )
    by_queue = {(q.namespace, q.queue): q for q in found.queues()}
    two = by_queue["nlp", "other-queue"]
    assert (two.jobs, two.before.pods, two.suggested.pods, two.after.pods) == (2, 6, 4, 6)
    assert two.before.more_devices_than(two.suggested) == "+4 nvidia.com/gpu"
    gone = next(q for q in found.queues() if q.refused.pods)
    assert gone.after.pods == 0


def test_excerpts_are_the_lines_of_the_file() -> None:
    for path in sorted(CASES.glob("*/before.yaml")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for job in of_files(path).jobs:
            record = job.record
            if record.first_line:
                mine = record.text.splitlines()
                theirs = lines[record.first_line - 1 :][: len(mine)]
                assert [x.strip().removeprefix("- ") for x in mine] == [x.strip().removeprefix("- ") for x in theirs]
                assert record.first_line - 1 <= job.where.line  # the line of its key, where it has one


def test_jobs_on_one_line_are_shown_on_lines_of_their_own() -> None:
    (doc,) = [JobView(r, ()) for r in migrate_text(_one_line()).records][:1]
    assert doc.record.first_line == 0
    assert "kind: PyTorchJob" in doc.record.text.splitlines()


def _one_line() -> str:
    import json

    from trainjob.kube import yaml

    (doc,) = yaml.load(EXAMPLE.read_text(encoding="utf-8"))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [doc.data, doc.data]})
