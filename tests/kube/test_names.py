"""Names: what is legal, and how long a TrainJob's name may be."""

from __future__ import annotations

import pytest

from trainjob.kube import names


@pytest.mark.parametrize(
    ("name", "label_1035", "label_1123", "subdomain"),
    [
        ("a", True, True, True),
        ("a-1", True, True, True),
        ("1a", False, True, True),
        ("a.b", False, False, True),
        ("", False, False, False),
        ("A", False, False, False),
        ("a_b", False, False, False),
        ("-a", False, False, False),
        ("a-", False, False, False),
        ("a\n", False, False, False),
        ("a..b", False, False, False),
        ("a" * 63, True, True, True),
        ("a" * 64, False, False, True),
        ("a" * 254, False, False, False),
        ("ä", False, False, False),
    ],
)
def test_legal_names(name: str, label_1035: bool, label_1123: bool, subdomain: bool) -> None:
    """RFC 1035 for TrainJobs, RFC 1123 labels for volumes, subdomains for most others."""
    assert names.is_label(name) is label_1035
    assert names.is_label_1123(name) is label_1123
    assert names.is_subdomain(name) is subdomain


@pytest.mark.parametrize(("pods", "limit"), [(1, 48), (10, 48), (11, 47), (100, 47), (101, 46), (1001, 45)])
def test_budget_shrinks_with_the_pods(pods: int, limit: int) -> None:
    """`<name>-node-0-<index>-<5 random>` has 63 characters at most."""
    assert names.budget([("node", pods)]) == limit
    assert len("x" * limit + f"-node-0-{pods - 1}-abcde") == 63


def test_budget_takes_the_longest_job() -> None:
    """With two jobs the longer job name decides."""
    assert names.budget([("node", 1), ("worker", 1)]) == 46
    assert names.budget() == 48


def test_shorten_tells_two_long_names_apart() -> None:
    """Within the limit, stable, legal, and different for different names."""
    assert names.shorten("short", 10) == "short"
    one, two = names.shorten("a-very-long-name-one", 12), names.shorten("a-very-long-name-two", 12)
    assert len(one) <= 12
    assert one != two
    assert one == names.shorten("a-very-long-name-one", 12)
    assert names.is_label(names.shorten("abcde-fghijklmno", 12))
    assert "--" not in names.shorten("abcde-.fghijklmno", 13)


def test_content_hash_depends_on_content_alone() -> None:
    """Key order does not matter, list order and values do."""
    assert names.content_hash({"a": 1, "b": [1, 2]}) == names.content_hash({"b": [1, 2], "a": 1})
    assert names.content_hash([1, 2]) != names.content_hash([2, 1])
    assert len(names.content_hash("ü")) == 8
