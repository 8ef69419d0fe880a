"""What README and docs say was shown on a cluster is a row of docs/evidence.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e import evidence

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
ROWS = set(re.findall(r'<a id="([^"]+)"></a>', PAGE))
LINK = re.compile(r"evidence\.md#([A-Za-z0-9_-]+)")
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("*/README.md")),
    ROOT / "CHANGELOG.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_to_evidence_lead_to_a_row(page: Path) -> None:
    missing = sorted(set(LINK.findall(page.read_text(encoding="utf-8"))) - ROWS)
    assert not missing, f"{page.name} links to rows that docs/evidence.md does not have: {missing}"


def test_the_readme_says_on_which_rows_it_rests() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(set(LINK.findall(readme))) >= 5


def test_every_row_is_a_test_that_exists() -> None:
    functions = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests" / "e2e").rglob("test_*.py"))
    tests = re.findall(r"`[\w/]*test_\w+\.py::(test_\w+)", PAGE)
    assert tests
    assert [name for name in tests if f"def {name}(" not in functions] == []


def test_a_page_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh checkout has the page alone: what it says stays when a part of the tests runs."""
    page = evidence.PAGE.read_text(encoding="utf-8")
    rows = evidence.read_page(page, "2.3.0")
    assert len(rows) == page.count("<a id=")
    assert evidence.read_page(page, "2.2.0") == []
    again = tmp_path / "page.md"
    monkeypatch.setattr(evidence, "PAGE", again)
    evidence.write_page(rows, {"Trainer": "v2.3.0", "JobSet": "v1"})
    assert [line for line in again.read_text().splitlines() if "<a id=" in line] == [
        line for line in page.splitlines() if "<a id=" in line
    ]
