"""v1 host names in texts: `<job>-master-0` and `<job>-worker-<i>` have other names in v2.

v2 gives every pod of a TrainJob `<name>-node-0-<index>.<name>`; the Master is index 0 and
Worker i is index i+1 (i when there was no Master).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trainjob.v1.traced import derived

Host = Callable[[str, int], str]


def v2_host(name: str, role: str, index: int, *, has_master: bool, two_roles: bool) -> str:
    """The v2 name of a v1 replica, resolvable inside the namespace."""
    if role == "worker" and two_roles:
        return f"{name}-worker-{index}-0.{name}"
    number = 0 if role == "master" else index + (1 if has_master else 0)
    return f"{name}-node-0-{number}.{name}"


def rewrite(text: str, job: str, host: Host) -> tuple[str, list[tuple[str, str]]]:
    """The text with every v1 host of `job` replaced, and the list of (old, new)."""
    found: list[tuple[str, str]] = []
    pattern = re.compile(rf"(?<![\w.-]){re.escape(job)}-(master|worker)-(\d+)(?![\w-])")

    def swap(match: re.Match[str]) -> str:
        new = host(match[1], int(match[2]))
        found.append((match[0], new))
        return new

    new = pattern.sub(swap, text)
    return (derived(new, text, job) if found else text), found


def rewrite_all(value: Any, job: str, host: Host) -> tuple[Any, list[tuple[str, str]]]:
    """`rewrite` in every text of a fragment."""
    if isinstance(value, str):
        return rewrite(value, job, host) if job in value else (value, [])
    found: list[tuple[str, str]] = []
    if isinstance(value, dict):
        out: dict[str, Any] = {}
        for key, item in value.items():
            out[key], more = rewrite_all(item, job, host)
            found += more
        return out, found
    if isinstance(value, list):
        items = []
        for item in value:
            new, more = rewrite_all(item, job, host)
            items.append(new)
            found += more
        return items, found
    return value, found
