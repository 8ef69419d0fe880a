"""Templates that nobody rendered."""

from __future__ import annotations

from typing import Any

import pytest

from trainjob.migrate.placeholders import find, first_template_line


def container(**fields: Any) -> Any:
    return {"spec": {"containers": [fields]}}


HARD = [
    ({"metadata": {"name": "{{ .Values.name }}"}}, "{{ .Values.name }}", "Helm or Jinja"),
    ({"metadata": {"name": "x-{% if a %}"}}, "{% if a %}", "Jinja"),
    ({"metadata": {"name": "{{ a\nb }}"}}, "{{ a\nb }}", "Helm or Jinja"),
    ({"metadata": {"name": "x-{{"}}, "{{", "Helm or Jinja"),
    ({"metadata": {"name": "${JOB}"}}, "${JOB}", "envsubst"),
    ({"metadata": {"name": "$JOB-x"}}, "$JOB", "envsubst"),
    ({"metadata": {"name": "${JOB:-x}"}}, "${JOB:-x}", "envsubst"),
    ({"spec": {"replicas": "<NUM_WORKERS>"}}, "<NUM_WORKERS>", "hand-filled"),
    (container(image="reg.io/<YOUR ORG>/img"), "<YOUR ORG>", "hand-filled"),
    (container(env=[{"name": "A", "value": "{{ x }}"}]), "{{ x }}", "Helm or Jinja"),
    (container(env=[{"name": "A", "value": "<token>"}]), "<token>", "hand-filled"),
]
SOFT = [
    (container(command=["python", "t.py", "$DATA"]), "$DATA", "envsubst"),
    (container(command=["python", "${DATA}/t.py"]), "${DATA}", "envsubst"),
    (container(command=["python", "{{ x }}"]), "{{ x }}", "Helm or Jinja"),
    (container(command=["sh", "-c", "echo {{ x }}"]), "{{ x }}", "Helm or Jinja"),
    (container(command=["python", "<file>"]), "<file>", "hand-filled"),
    (container(env=[{"name": "A", "value": "$HOME/x"}]), "$HOME", "envsubst"),
    ({"metadata": {"annotations": {"note": "<who>"}}}, "<who>", "hand-filled"),
]
NONE = [
    {},
    container(command=["sh", "-c", "echo $RANK ${WORLD_SIZE:-1} $$"]),
    container(command=["bash", "-eo", "pipefail", "-c", "x=${Y}"]),
    container(args=["bash", "-c", "echo $RANK"]),
    container(command=["sh", "-c"], args=["python t.py --rank $RANK"]),
    container(command=["python", "t.py", "$(RANK)", "$$HOME", "a<b", "a < b > c", "cost $5", "$lower"]),
    container(command=["python", "-c", "x = {'a': {1: 2}}"]),
    container(env=[{"name": "A", "value": "a <b> c"}, {"name": "B", "value": "$(A)"}]),
    container(command="no list", args=5),
    container(command=[1, None], args={"a": "b"}),
    {"metadata": {"annotations": {"note": "see <https://x> for $(X)"}}},
]


@pytest.mark.parametrize(("data", "text", "engine"), HARD)
def test_where_only_a_value_makes_sense(data: Any, text: str, engine: str) -> None:
    """In names, images, numbers and values: the job cannot be read."""
    (found,) = find(data)
    assert (found.text, found.engine, found.hard) == (text, engine, True)


@pytest.mark.parametrize(("data", "text", "engine"), SOFT)
def test_where_it_may_be_meant(data: Any, text: str, engine: str) -> None:
    """In programs and annotations: reported and kept."""
    (found,) = find(data)
    assert (found.text, found.engine, found.hard) == (text, engine, False)


@pytest.mark.parametrize("data", NONE)
def test_what_is_no_placeholder(data: Any) -> None:
    """Variables of a shell, expansions of Kubernetes, escapes, Python and prose; wrong types are no crash."""
    assert find(data) == []


def test_all_are_found_in_order_with_their_places() -> None:
    """Several in one text too."""
    data = {"metadata": {"name": "{{ a }}-{{ b }}"}, "spec": {"x": ["$ONE", {"y": "${TWO}"}]}}
    assert [(p.path, p.text) for p in find(data)] == [
        (("metadata", "name"), "{{ a }}"),
        (("metadata", "name"), "{{ b }}"),
        (("spec", "x", 0), "$ONE"),
        (("spec", "x", 1, "y"), "${TWO}"),
    ]


@pytest.mark.parametrize(
    ("text", "line"), [("a: 1\nb: {{ x }}\n", 1), ("{%- if x %}\na: 1\n", 0), ("a: {b: {}}\n", None), ("", None)]
)
def test_the_first_line_of_a_template(text: str, line: int | None) -> None:
    """For a file that is no YAML because it is a template."""
    assert first_template_line(text) == line
