"""The review page: whole, self-contained, and safe whatever a manifest holds."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from tests.report import hostile
from tests.report.support import EXAMPLE, REFUSED, of_cases, of_files, review
from trainjob.report.html import to_html
from trainjob.report.style import JS

VOID = {"meta", "input", "br", "col"}
OPTIONAL_END = {"td", "tr"}


class Page(HTMLParser):
    """Tags with their attributes and texts, and whether they close in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "tr", "tbody") and self.open and self.open[-1] == "td":
            self.open.pop()
        if tag == "tr" and self.open and self.open[-1] == "tr":
            self.open.pop()
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] in OPTIONAL_END and self.open[-1] != tag:
            self.open.pop()
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(to_html(of_cases()))


def test_tags_close_in_order(page: Page) -> None:
    assert page.open == []


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    for tag, attrs in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form"), tag
        assert "src" not in attrs
        assert not any(name.startswith("on") for name in attrs)
        assert attrs.get("href", "#").startswith("#")  # type: ignore[union-attr]
    text = to_html(of_cases())
    style = re.search(r"<style>(.*?)</style>", text, re.S)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_only_the_script_of_the_page_may_run(page: Page) -> None:
    policy = next(a["content"] for a in page.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(JS.encode()).digest()).decode()
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert len(page.of("script")) == 1


def test_every_job_has_a_row_and_its_details(page: Page) -> None:
    found = of_cases()
    rows = [a for a in page.of("tr") if "data-job" in a]
    assert [a["data-job"] for a in rows] == [f"job-{i}" for i in range(len(found.jobs))]
    assert [a["id"] for a in page.of("details") if "id" in a] == [a["data-job"] for a in rows]
    ids = {a["id"] for _, a in page.tags if "id" in a}
    assert {str(a["href"])[1:] for a in page.of("a")} <= ids


def test_links_of_the_causes_lead_to_their_jobs() -> None:
    found = of_files(EXAMPLE, REFUSED)
    text = to_html(found)
    assert '<a href="#job-1">' in text.split("Blockers by cause")[1].split("</table>")[0]


def test_numbers_of_the_page_are_those_of_the_review() -> None:
    text = to_html(of_files(EXAMPLE, REFUSED))
    assert '<b class="">2</b><span>jobs</span>' in text
    assert '<b class="refused">1</b><span>refused</span>' in text
    queue = next(row for row in text.split("<tr>") if "nlp-queue" in row)
    cells = dict(re.findall(r'<td data-l="([^"]*)"[^>]*>(.*?)</td>', queue))
    shown = {name: re.sub(r"<[^>]*>", "", cell) for name, cell in cells.items()}
    assert shown == {
        "namespace": "nlp",
        "queue": "nlp-queue",
        "jobs": "1",
        "v1 ran": "3 pods, 6 nvidia.com/gpu",
        "by Worker count": "2 pods, 4 nvidia.com/gpu",
        "v2 asks for": "3 pods, 6 nvidia.com/gpu",
        "not migrated": "0 pods",
        "quota short by": "+2 nvidia.com/gpu",
    }


def test_before_and_after_have_line_numbers() -> None:
    text = to_html(of_files(EXAMPLE))
    assert '<tr class="gone"><td>12<td>    cleanPodPolicy: None<td><span class="note"' in text
    assert '<tr class="kept"><td>19<td>    image: registry.example.com/nlp/sft:2.4.1<td>25\n' in text
    assert '<tr class="changed"><td>18<td>    numNodes: 3<td>16, 45\n' in text


def test_a_refused_job_shows_itself_once() -> None:
    text = to_html(of_files(REFUSED))
    assert "Refused: this job stays" in text
    assert text.count("<td>kind: PyTorchJob") == 1
    assert "after (right" not in text


def test_the_same_input_gives_the_same_page() -> None:
    assert to_html(of_cases()) == to_html(of_cases())


def test_hostile_texts_stay_texts() -> None:
    found = review([(hostile.FILE, hostile.TEXT), (hostile.FILE, hostile.REFUSED)])
    assert (found.migrated, found.refused) == (1, 1)
    page = Page(to_html(found))
    assert page.open == []
    assert len(page.of("script")) == len(page.of("style")) == 1
    harmless = Page(to_html(of_files(EXAMPLE)))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in harmless.tags} | {"i"}
    assert all(not name.startswith("on") for _, attrs in page.tags for name in attrs)
    whole = "".join(page.texts)
    for text in ('ns"><img src=x onerror=alert(1)>', "</td></table><h1 id=owned>", "<iframe src=javascript:alert(5)>"):
        assert text in whole


def test_an_empty_review_is_a_page() -> None:
    page = Page(to_html(review([])))
    assert page.open == []
    assert "".join(page.texts).count("0jobs") == 1
