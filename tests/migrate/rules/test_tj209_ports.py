"""TJ209: v1's own port is dead; others are kept where a runtime is generated anyway."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MAIN, alone, chain, noop, v1
from trainjob.migrate.rules import tj209_ports

RULE = tj209_ports.RULE
AT = f"{MAIN}.ports[0]"


def test_noop_without_ports() -> None:
    """Nothing to keep."""
    noop(RULE)


@pytest.mark.parametrize(
    ("port", "text"),
    [
        ({"name": "pytorchjob-port", "containerPort": 23456}, "pytorchjob-port 23456 is left out"),
        ({"containerPort": 29500}, "port 29500 is left out: Trainer adds it"),
    ],
)
def test_ports_of_the_rendezvous_are_dropped(port: Any, text: str) -> None:
    """v2 has its own."""
    ran = alone(RULE, v1({"ports": [port]}))
    ran.says("note", text, at=AT)
    assert ran.role.container == {}


def test_a_container_port_informs_only() -> None:
    """No runtime for it, but it is written where there is one."""
    port = {"name": "metrics", "containerPort": 8080}
    alone(RULE, v1({"ports": [port]})).says("note", "port 8080 only informs", at=AT)
    assert chain(v1({"ports": [port]})).runtime is None
    assert chain(v1({"ports": [port], "workingDir": "/w"})).container()["ports"] == [port]


@pytest.mark.parametrize("number", [8080, 29500])
def test_a_host_port_needs_a_runtime(number: int) -> None:
    """It really opens something."""
    port = {"containerPort": number, "hostPort": number}
    ran = alone(RULE, v1({"ports": [port]}))
    assert (ran.findings, ran.role.container["ports"]) == ([], [port])
    assert chain(v1({"ports": [port]})).container()["ports"] == [port]
