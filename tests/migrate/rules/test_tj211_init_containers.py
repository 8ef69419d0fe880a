"""TJ211: init containers are carried in a generated runtime."""

from __future__ import annotations

from tests.migrate.rules.support import POD, alone, chain, noop, v1
from trainjob.migrate.rules import tj211_init_containers

RULE = tj211_init_containers.RULE


def test_noop_without_init_containers() -> None:
    """Nothing to carry."""
    noop(RULE)


def test_they_are_carried_in_order() -> None:
    """Word by word, with a note each; they run on every pod."""
    init = [
        {"name": "a", "image": "a:1", "command": ["sh", "-c", ""], "env": [{"name": "E", "value": "x"}]},
        {"name": "b", "image": "b:1", "restartPolicy": "Always"},
    ]
    ran = alone(RULE, v1(pod={"initContainers": init}))
    ran.says(
        "note", "init container 'a' needs a generated runtime; it runs on every pod", at=f"{POD}.initContainers[0]"
    )
    ran.says("note", "init container 'b'", at=f"{POD}.initContainers[1]")
    assert chain(v1(pod={"initContainers": init})).pod()["initContainers"] == init


def test_the_operators_own_is_left_out() -> None:
    """init-pytorch waited for the Master's name."""
    data = v1(pod={"initContainers": [{"name": "init-pytorch", "image": "alpine:3.10"}]})
    ran = alone(RULE, data)
    ran.says("note", "init-pytorch is left out", at=f"{POD}.initContainers[0]")
    assert ran.role.init_containers == []
    assert chain(data).runtime is None
