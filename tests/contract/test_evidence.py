"""What README and docs say was shown on a cluster is a row of docs/evidence.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
    functions = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests" / "e2e").glob("test_*.py"))
    tests = re.findall(r"`test_\w+\.py::(test_\w+)", PAGE)
    assert tests
    assert [name for name in tests if f"def {name}(" not in functions] == []
