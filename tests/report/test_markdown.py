"""The pull request comment: small enough, and safe whatever a manifest holds."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from tests.report import estate, hostile
from tests.report.support import EXAMPLE, REFUSED, of_cases, of_files, review
from trainjob.report.markdown import LIMIT, code, text, to_markdown


def rendered(markdown: str) -> str:
    return MarkdownIt("commonmark").enable("table").render(markdown)


def test_summary_blockers_and_jobs() -> None:
    out = to_markdown(of_files(EXAMPLE, REFUSED))
    assert "**2 jobs: 1 migrated, 1 refused**" in out
    assert re.search(r"\| `TJ203` the deepspeed launcher .* \| 1 \| 1 \| use an MPI runtime", out)
    assert "| `nlp` | `nlp-queue` | 1 | 3 | 2 | 6 nvidia.com/gpu | 6 nvidia.com/gpu | +2 nvidia.com/gpu |" in out
    assert out.index("44-deepspeed") < out.index("nlp/llama-sft")


def test_tables_are_tables() -> None:
    html = rendered(to_markdown(of_cases()))
    assert html.count("<table>") == 4
    for row in re.findall(r"<tr>(.*?)</tr>", html, re.S):
        assert row.count("<td") + row.count("<th") in (4, 7, 8)
    assert html.count("<details>") == html.count("</details>")


def test_a_comment_stays_below_the_limit() -> None:
    found = review(estate.estate(200))
    out = to_markdown(found)
    assert len(out) <= LIMIT
    shown = out.count("<details>")
    assert f"{200 - shown} more jobs left out here" in out
    assert out.count("</details>") == shown


def test_hostile_texts_stay_texts() -> None:
    html = rendered(to_markdown(review([(hostile.FILE, hostile.TEXT), (hostile.FILE, hostile.REFUSED)])))
    for tag in ("<script", "<img", "<svg", "<h1>owned", "<iframe", "<a ", "</details></details>"):
        assert tag not in html.lower()
    assert "@everyone" not in html
    assert "@​everyone" in html


def test_text_and_code_keep_what_was_written() -> None:
    nasty = "a|b `c` *d* <e> [f](g) \\ $HOME ~h~ _i_"
    assert rendered(text(nasty)).strip() == ("<p>a|b `c` *d* &lt;e&gt; [f](g) \\ $HOME ~h~ _i_</p>")
    assert rendered(code("a`b``c")).strip() == "<p><code>a`b``c</code></p>"
    assert code("") == ""
    assert "\n" not in text("two\nlines")
