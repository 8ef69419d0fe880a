"""Edits of a kustomization: what is not changed stays byte for byte."""

from __future__ import annotations

import pytest

from trainjob.kube import yaml
from trainjob.migrate.tree.edits import EditError, change_list

TEXT = """\
# licence
resources:  # what there is
  - a.yaml
  # the second
  - b.yaml

patches:
- path: one.yaml   # first
# about two
- patch: |-
    # not a comment
    kind: X
  target:
    kind: X

# the images
images:
- {name: a, newTag: "1"}
"""


def data(text: str) -> object:
    return yaml.load(text)[0].data


def test_an_item_goes_with_the_comment_above_it() -> None:
    out = change_list(TEXT, "resources", drop=[1])
    assert out == TEXT.replace("  # the second\n  - b.yaml\n", "")


def test_an_item_is_added_behind_the_last_one() -> None:
    assert change_list(TEXT, "resources", add=["c.yaml"]) == TEXT.replace("- b.yaml\n", "- b.yaml\n  - c.yaml\n")


def test_the_first_item_goes() -> None:
    assert change_list(TEXT, "patches", drop=[0]) == TEXT.replace("- path: one.yaml   # first\n", "")


def test_a_block_scalar_is_one_item() -> None:
    start, end = TEXT.index("# about two"), TEXT.index("\n# the images")
    assert change_list(TEXT, "patches", drop=[1]) == TEXT[:start] + TEXT[end:]


def test_a_list_without_items_goes_as_a_whole() -> None:
    start, end = TEXT.index("patches:"), TEXT.index("\n# the images")
    assert change_list(TEXT, "patches", drop=[0, 1]) == TEXT[:start] + TEXT[end:]


def test_all_items_are_exchanged() -> None:
    out = change_list(TEXT, "resources", drop=[0, 1], add=["c.yaml"])
    assert out == TEXT.replace("  - a.yaml\n  # the second\n  - b.yaml\n", "  - c.yaml\n")


def test_a_new_key_comes_last() -> None:
    assert change_list(TEXT, "configurations", add=["x.yaml"]) == f"{TEXT}configurations:\n- x.yaml\n"


def test_nothing_to_do() -> None:
    assert change_list(TEXT, "bases") == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "resources: [a.yaml, b.yaml]\nnamespace: x\n",
        "resources: [a.yaml,\n  b.yaml]  # both\nnamespace: x\n",
        "resources:\n- a.yaml\n- b.yaml",
        "resources:\r\n- a.yaml\r\n- b.yaml\r\nnamespace: x\r\n",
        "---\nresources:\n-\n  a.yaml\n-   b.yaml\n...\n",
        '"resources":\n    - a.yaml\n    - b.yaml\n',
    ],
)
def test_other_ways_to_write_a_list(text: str) -> None:
    added, dropped = change_list(text, "resources", add=["c"]), change_list(text, "resources", drop=[0])
    before = data(text)
    assert isinstance(before, dict)
    assert data(added) == {**before, "resources": ["a.yaml", "b.yaml", "c"]}
    assert data(dropped) == {**before, "resources": ["b.yaml"]}


@pytest.mark.parametrize(
    "text", ["{resources: [a.yaml], namespace: x}\n", "a: 1\n---\nb: 1\n", "resources: &x [a]\nbases: *x\n"]
)
def test_what_cannot_be_changed_is_refused(text: str) -> None:
    with pytest.raises(EditError):
        change_list(text, "resources", drop=[0], add=["b"])
