"""What holds of origins and reports for every v1 job, realistic or broken."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.property.strategies import broken, jobs, torn_texts
from trainjob.kube.yaml import dotted
from trainjob.migrate import Migration, migrate_text
from trainjob.migrate.job import Options
from trainjob.migrate.origin import Kind
from trainjob.migrate.provenance import leaves
from trainjob.report import footprint
from trainjob.report.fields import to_text
from trainjob.report.html import to_html
from trainjob.report.markdown import to_markdown
from trainjob.report.model import Review, views
from trainjob.report.sarif import to_sarif
from trainjob.targets import DEFAULT, TARGETS, Target

Obj = dict[str, Any]


def explained(text: str, target: Target = DEFAULT) -> Migration:
    return migrate_text(text, file="job.json", options=Options(target, explain=True))


@given(jobs(), st.sampled_from(TARGETS))
def test_every_field_has_an_origin_and_tracing_changes_nothing(job: Obj, target: Target) -> None:
    text = json.dumps(job)
    result = explained(text, target)
    plain = migrate_text(text, file="job.json", target=target)
    assert (result.text, result.findings) == (plain.text, plain.findings)
    for record in result.records:
        if record.job is None:
            continue
        written = {(o["kind"], dotted(p)): value for o in record.job.objects() for p, value in leaves(o)}
        assert {(f.object, f.path): f.value for f in record.fields} == written
        for f in record.fields:
            assert (f.sources and f.rules) if f.kind is Kind.V1 else f.note, f


@given(jobs())
def test_pods_and_devices_are_kept(job: Obj) -> None:
    for record in migrate_text(json.dumps(job)).records:
        if record.job is not None:
            assert footprint.v2(record.job) == footprint.v1(record.data)


def every_form(result: Migration) -> None:
    review = Review("2.3", tuple(views(result.records, result.findings)), result.findings)
    page = to_html(review)
    assert page.count("<script>") == 1
    assert len(to_markdown(review)) < 65_536
    assert len(json.loads(to_sarif(result.findings, {}))["runs"][0]["results"]) == len(result.findings)
    to_text(result.records)


@given(broken())
def test_broken_jobs_can_be_reported(job: Any) -> None:
    every_form(explained(json.dumps(job)))


@given(torn_texts())
def test_torn_texts_can_be_reported(text: str) -> None:
    every_form(explained(text))
