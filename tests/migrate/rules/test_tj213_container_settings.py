"""TJ213: hooks, probes, terminal and termination message are carried in a generated runtime."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MAIN, alone, chain, noop, v1
from trainjob.migrate.rules import tj213_container_settings

RULE = tj213_container_settings.RULE
SETTINGS: dict[str, Any] = {
    "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}},
    "startupProbe": {"tcpSocket": {"port": 1}},
    "livenessProbe": {"exec": {"command": ["true"]}},
    "readinessProbe": {"httpGet": {"port": 80, "path": "/"}},
    "stdin": True,
    "stdinOnce": True,
    "tty": True,
    "terminationMessagePath": "/tmp/end",
    "terminationMessagePolicy": "FallbackToLogsOnError",
}


@pytest.mark.parametrize(
    "container",
    [{}, {"tty": False, "stdin": False, "lifecycle": {}}, {"terminationMessagePath": "/dev/termination-log"}],
)
def test_noop_for_defaults(container: Any) -> None:
    """What an API server writes into every pod needs no runtime."""
    noop(RULE, v1(container))


@pytest.mark.parametrize("key", SETTINGS)
def test_each_setting_is_carried(key: str) -> None:
    """With a note at its place."""
    data = v1({key: SETTINGS[key]})
    ran = alone(RULE, data)
    ran.says("note", f"{key} needs a generated runtime", at=f"{MAIN}.{key}")
    assert chain(data).container()[key] == SETTINGS[key]
