"""v1 host names in texts."""

from __future__ import annotations

from typing import Any

import pytest

from trainjob.migrate.hosts import rewrite, rewrite_all, v2_host


def host(role: str, index: int) -> str:
    return f"<{role}{index}>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("job-master-0", "<master0>"),
        ("tcp://job-master-0:23456", "tcp://<master0>:23456"),
        ("a=job-worker-0,job-worker-11", "a=<worker0>,<worker11>"),
        ("job-worker-0.ns.svc.cluster.local", "<worker0>.ns.svc.cluster.local"),
        ("'job-master-0'", "'<master0>'"),
        ("x@job-master-0/y", "x@<master0>/y"),
        ("my-job-master-0", "my-job-master-0"),
        ("x.job-master-0", "x.job-master-0"),
        ("job-master-0x", "job-master-0x"),
        ("job-master-0-0", "job-master-0-0"),
        ("job-master", "job-master"),
        ("job-launcher-0", "job-launcher-0"),
        ("JOB-master-0", "JOB-master-0"),
        ("", ""),
    ],
)
def test_only_whole_names_of_this_job(text: str, expected: str) -> None:
    """With a port, a path or a domain behind them; never inside another name."""
    new, found = rewrite(text, "job", host)
    assert new == expected
    assert bool(found) is (new != text)


def test_names_with_dots_are_taken_literally() -> None:
    """The job's name is no pattern."""
    assert rewrite("axb-master-0", "a.b", host) == ("axb-master-0", [])


def test_each_replacement_is_listed() -> None:
    """Old and new."""
    assert rewrite("job-master-0 job-worker-1", "job", host)[1] == [
        ("job-master-0", "<master0>"),
        ("job-worker-1", "<worker1>"),
    ]


def test_fragments_are_rewritten_in_every_text() -> None:
    """Values of mappings and lists, not keys, not numbers; the input is left alone."""
    value: dict[str, Any] = {"a": ["job-master-0", 3, None, True], "job-master-0": {"b": "job-worker-1"}}
    new, found = rewrite_all(value, "job", host)
    assert new == {"a": ["<master0>", 3, None, True], "job-master-0": {"b": "<worker1>"}}
    assert len(found) == 2
    assert value["a"][0] == "job-master-0"


@pytest.mark.parametrize(
    ("role", "index", "has_master", "two_roles", "expected"),
    [
        ("master", 0, True, False, "job-node-0-0.job"),
        ("worker", 0, True, False, "job-node-0-1.job"),
        ("worker", 4, True, False, "job-node-0-5.job"),
        ("worker", 0, False, False, "job-node-0-0.job"),
        ("master", 0, True, True, "job-node-0-0.job"),
        ("worker", 2, True, True, "job-worker-2-0.job"),
    ],
)
def test_v2_hosts(role: str, index: int, has_master: bool, two_roles: bool, expected: str) -> None:
    """The Master is index 0, Worker i the next ones; of two jobs a Worker is a job of its own."""
    assert v2_host("job", role, index, has_master=has_master, two_roles=two_roles) == expected
