"""Streams with empty documents, as templates and comments leave them."""

from __future__ import annotations

import pytest

from trainjob.kube import yaml
from trainjob.migrate import migrate_text

JOB = (
    "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata:\n  name: a\nspec:\n  pytorchReplicaSpecs:\n    Master:\n"
    "      template:\n        spec:\n          containers:\n          - name: pytorch\n            image: r/i:1\n"
)


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("---\n# only a comment\n---\na: 1\n", ["---\n# only a comment\n", "---\na: 1\n"]),
        ("---\n---\na: 1\n", ["---\n", "---\na: 1\n"]),
        ("--- # why\n\n---\na: 1\n---\n", ["--- # why\n\n", "---\na: 1\n", "---\n"]),
        ("---\n...\n---\na: 1\n", ["---\n...\n", "---\na: 1\n"]),
        ("# a comment\n---\na: 1\n", ["# a comment\n---\na: 1\n"]),
        (
            "%YAML 1.1\n---\na: 1\n...\n%YAML 1.1\n---\nb: 1\n",
            ["%YAML 1.1\n---\na: 1\n...\n", "%YAML 1.1\n---\nb: 1\n"],
        ),
    ],
)
def test_an_empty_document_ends_at_the_next_marker(text: str, documents: list[str]) -> None:
    found = yaml.load(text)
    assert [doc.text for doc in found] == documents
    assert [doc.first_line for doc in found] == [1 + "".join(documents[:i]).count("\n") for i in range(len(documents))]


@pytest.mark.parametrize("before", ["---\n# was: kind: PyTorchJob\n---\n", "---\n---\n", "---\n# x\n...\n---\n"])
def test_a_job_after_an_empty_document_is_migrated(before: str) -> None:
    result = migrate_text(before + JOB)
    assert (result.converted, result.refused) == (1, 0)
    assert result.text.startswith(before.removesuffix("---\n"))
