"""Are two roles the same pod, and one program for two of them, run under real shells."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainjob.migrate.roles import (
    canonical,
    default_pull_policy,
    differences,
    merged_ports,
    operator_default,
    overwritten,
    rank_switch,
)
from trainjob.v1.pytorchjob import Replica

SHELLS = ["/bin/sh", shutil.which("bash") or "/bin/bash"]


def replica(container: Any = None, pod: Any = None, metadata: Any = None, role: str = "Master") -> Replica:
    main = {"name": "pytorch", "image": "i:1", **(container or {})}
    template = {"metadata": metadata or {}, "spec": {"containers": [main], **(pod or {})}}
    return Replica(role, ("spec", "pytorchReplicaSpecs", role), {"template": template})


# --- the comparison ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("h:5/a", "Always"),
        ("h:5/a:2", "IfNotPresent"),
        ("a@sha256:1", "IfNotPresent"),
    ],
)
def test_kubernetes_default_pull_policy(image: str, policy: str) -> None:
    """A port of the registry is no tag, and a digest needs no pull."""
    assert default_pull_policy(image) == policy


def test_fields_that_say_the_default() -> None:
    """What an API server fills in."""
    container = {"image": "a:1", "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log"}
    assert operator_default(container, "imagePullPolicy")
    assert operator_default(container, "terminationMessagePath")
    assert not operator_default({**container, "imagePullPolicy": "Always"}, "imagePullPolicy")
    assert not operator_default({"tty": True}, "tty")


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (replica(), replica(), []),
        (replica({"name": "x"}), replica(), []),
        (replica(pod={"restartPolicy": "Never"}), replica(pod={"restartPolicy": "Always"}), []),
        (replica(pod={"dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}), replica(), []),
        (
            replica(pod={"volumes": [{"name": "a"}, {"name": "b"}]}),
            replica(pod={"volumes": [{"name": "b"}, {"name": "a"}]}),
            [],
        ),
        (replica({"env": [{"name": "RANK", "value": "1"}]}), replica(), []),
        (replica({"ports": [{"name": "pytorchjob-port", "containerPort": 1}]}), replica(), []),
        (replica(pod={"initContainers": [{"name": "init-pytorch"}]}), replica(), []),
        (replica({"securityContext": {}}, {"nodeSelector": {}}), replica(), []),
        (replica(metadata={"labels": {"a": "1"}}), replica(), ["metadata.labels"]),
        (replica(metadata={"annotations": {"a": "1"}}), replica(), ["metadata.annotations"]),
        (replica({"args": ["a", "b"]}), replica({"args": ["b", "a"]}), ["containers.args"]),
        (replica({"image": "i:2", "tty": True}), replica(), ["containers.image", "containers.tty"]),
        (replica(pod={"dnsPolicy": "Default"}), replica(), ["dnsPolicy"]),
        (
            replica({"env": [{"name": "A", "value": "1"}]}),
            replica({"env": [{"name": "A", "value": "2"}]}),
            ["containers.env"],
        ),
        (
            replica({"env": [{"name": "A"}, {"name": "A", "value": "2"}]}),
            replica({"env": [{"name": "A", "value": "2"}]}),
            [],
        ),
    ],
)
def test_differences(one: Replica, two: Replica, expected: list[str]) -> None:
    """By meaning: order, defaults and what the operator wrote do not count, in both directions."""
    assert differences(one, two) == expected
    assert differences(two, one) == expected


def test_differences_in_sidecars() -> None:
    """A field of a sidecar is named with its container; other containers are a difference of their own."""
    main = {"name": "pytorch", "image": "i:1"}
    one, two, three = (
        replica(pod={"containers": [main, *more]})
        for more in ([{"name": "s", "image": "a"}], [{"name": "s", "image": "b"}], [])
    )
    assert differences(one, two) == ["containers[s].image"]
    assert differences(one, three) == ["containers"]


def test_canonical_leaves_the_replica_alone() -> None:
    """It works on a copy."""
    given = replica({"env": [{"name": "RANK", "value": "1"}], "ports": []})
    before = str(given.data)
    canonical(given)
    assert str(given.data) == before


def test_merged_ports_and_overwritten_without_a_training_container() -> None:
    """Two unnamed containers: nothing to join, nothing to tell."""
    two = replica(pod={"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "init-pytorch"}]})
    assert merged_ports(two, two) == []
    assert [text for _, text in overwritten(two, two)] == ["the init container init-pytorch"]


# --- the switch, under real shells ---------------------------------------------------------------


def expand(word: str, env: dict[str, str]) -> str:
    """What Kubernetes makes of `$(NAME)` and `$$` in command and args."""

    def one(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return env.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", one, word)


def run(words: list[str], shell: str, env: dict[str, str], folder: Path) -> list[str]:
    """The lines that a container with these words would print."""
    path = f"{Path(shell).parent}:/usr/bin:/bin"
    if words[0] in ("sh", "bash"):
        words = [shell, *words[1:]]
    done = subprocess.run(
        [expand(w, env) for w in words],
        env={"PATH": path, **env},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


PAIRS: dict[str, tuple[list[str], list[str], list[str], list[str]]] = {
    "two programs": (["echo", "m"], ["echo", "w"], ["m"], ["w"]),
    "quotes": (["printf", "%s\n", "it's", 'a "b"'], ["printf", "%s\n", "a'b'c"], ["it's", 'a "b"'], ["a'b'c"]),
    "spaces, stars, empty words": (
        ["printf", "<%s>\n", "a  b", "*", "", "$HOME"],
        ["printf", "<%s>\n", "\\n", "`x`", "#"],
        ["<a  b>", "<*>", "<>", "<$HOME>"],
        ["<\\n>", "<`x`>", "<#>"],
    ),
    "several lines": (["printf", "%s", "a\nb\n"], ["echo", "w"], ["a", "b"], ["w"]),
    "expanded by Kubernetes": (
        ["echo", "rank=$(RANK)", "$(NOT_SET)", "$$(RANK)"],
        ["echo", "$$RANK"],
        ["rank=0 $(NOT_SET) $(RANK)"],
        ["$RANK"],
    ),
    "two scripts": (["sh", "-c", "echo m; echo $RANK"], ["sh", "-c", "echo w $RANK"], ["m", "0"], ["w 1"]),
    "scripts with quotes": (
        ["sh", "-c", 'echo "it\'s" \'a "b"\''],
        ["sh", "-c", 'x=\'y\'; echo "$x" "$(echo sub)"'],
        ['it\'s a "b"'],
        ["y sub"],
    ),
    "heredocs": (
        ["sh", "-c", "cat <<'EOF'\nelse $RANK\nfi\nEOF\n"],
        ["sh", "-c", "cat <<EOF\nrank $RANK\nEOF"],
        ["else $RANK", "fi"],
        ["rank 1"],
    ),
    "a comment at the end": (["sh", "-c", "echo m # x"], ["sh", "-c", "# y\necho w\n# z"], ["m"], ["w"]),
    "a continued line at the end": (["sh", "-c", "echo m \\\n"], ["sh", "-c", "echo w \\\n\n"], ["m"], ["w"]),
    "empty scripts": (["sh", "-c", "echo m"], ["sh", "-c", ""], ["m"], []),
    "only a comment": (["sh", "-c", "# nothing\n"], ["sh", "-c", "\n\n"], [], []),
    "nested ifs and cases": (
        ["sh", "-c", 'if [ "$RANK" = 0 ]; then echo a; else echo b; fi'],
        ["sh", "-c", "case $RANK in 0) echo a;; *) echo b;; esac\nfor i in 1 2; do echo $i; done"],
        ["a"],
        ["b", "1", "2"],
    ),
    "exec and exit": (["sh", "-c", "exec echo m"], ["sh", "-c", "echo w; exit 0; echo no"], ["m"], ["w"]),
    "words behind the script": (
        ["sh", "-c", 'echo "$0" "$1"', "zero", "one two"],
        ["sh", "-c", 'echo "$1"', "zero", "one two"],
        ["zero one two"],
        ["one two"],
    ),
    "options of the shell": (["sh", "-ec", "echo m; true"], ["sh", "-ec", "echo w"], ["m"], ["w"]),
    "other words behind the script": (
        ["sh", "-c", 'echo "$1"', "x", "m"],
        ["sh", "-c", 'echo "$1"', "x", "w"],
        ["m"],
        ["w"],
    ),
    "a shell and a program": (["sh", "-c", "echo m $RANK"], ["echo", "w"], ["m 0"], ["w"]),
    "a shell behind env": (["env", "A=1", "sh", "-c", "echo $A"], ["env", "A=1", "sh", "-c", "echo w"], ["1"], ["w"]),
    "escaped variables": (["sh", "-c", "echo $$RANK"], ["sh", "-c", "echo $$RANK $(RANK)"], ["0"], ["1 1"]),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", PAIRS)
def test_each_rank_runs_its_own_program(name: str, shell: str, tmp_path: Path) -> None:
    """Rank 0 prints what the Master prints, every other rank what a Worker prints, to the byte."""
    master, worker, of_master, of_worker = PAIRS[name]
    command, args = rank_switch((master, []), (worker, []))
    words = [*command, *(args or [])]
    printed = {}
    for rank in (0, 1, 7):
        env = {"PET_NODE_RANK": str(rank), "RANK": str(rank)}
        printed[rank] = run(words, shell, env, tmp_path)
        assert printed[rank] == run(worker if rank else master, shell, env, tmp_path)
    assert (printed[0], printed[1]) == (of_master, of_worker)


@pytest.mark.parametrize(("command", "args"), [(["sh", "-c"], ["echo m"]), (["sh"], ["-c", "echo m"])])
def test_command_and_args_stay_apart(command: list[str], args: list[str], tmp_path: Path) -> None:
    """An image whose entrypoint matters keeps its args as args."""
    new_command, new_args = rank_switch((command, args), (command, [*args[:-1], "echo w"]))
    assert new_command == command
    assert new_args is not None
    assert len(new_args) == len(args)
    assert run([*new_command, *new_args], "/bin/sh", {"PET_NODE_RANK": "3"}, tmp_path) == ["w"]


def test_bash_stays_bash(tmp_path: Path) -> None:
    """What only bash knows still works; two different shells are started by `sh`."""
    command, args = rank_switch((["bash", "-c", "a=(m n); echo ${a[1]}"], []), (["bash", "-c", "echo w"], []))
    assert (command[:2], args) == (["bash", "-c"], None)
    assert run(command, SHELLS[1], {"PET_NODE_RANK": "0"}, tmp_path) == ["n"]
    command, args = rank_switch((["bash", "-c", "echo m"], []), (["sh", "-c", "echo w"], []))
    assert (command[:2], args) == (["sh", "-c"], None)
    assert run(command, "/bin/sh", {"PET_NODE_RANK": "0"}, tmp_path) == ["m"]
