"""TJ203: command and args are carried word by word, and read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MAIN, alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj101_replicas, tj102_roles, tj203_command

RULE = tj203_command.RULE
AFTER = (tj102_roles.RULE, tj101_replicas.RULE)
AT = f"{MAIN}.command"


def test_noop_without_command_and_args() -> None:
    """The image's entrypoint runs."""
    noop(RULE, v1({"command": None}), after=AFTER)


@pytest.mark.parametrize(
    ("command", "args"),
    [
        (["python", "t.py"], ["--a", ""]),
        (None, ["--only-args"]),
        (["sh", "-c", "echo $$RANK && exec python t.py\n"], None),
    ],
)
def test_words_are_carried_unchanged(command: Any, args: Any) -> None:
    """Empty words, `$$` and line ends too."""
    trainer = chain(v1({"command": command, "args": args})).trainer
    assert (trainer.get("command"), trainer.get("args")) == (command, args)


@pytest.mark.parametrize("key", ["command", "args"])
def test_more_words_than_a_trainjob_takes_are_refused(key: str) -> None:
    """128 fit."""
    words = ["python", *("x" for _ in range(127))]
    assert len(chain(v1({key: words})).trainer[key]) == 128
    assert "129 items; a TrainJob takes 128" in refusal(RULE, v1({key: [*words, "y"]}), after=AFTER).message


def test_deepspeed_over_several_pods_is_refused() -> None:
    """It needs ssh; on one pod without a hostfile it is fine."""
    assert alone(RULE, v1({"command": ["deepspeed", "t.py"]}), after=AFTER).findings == []
    assert "ssh and a hostfile" in refusal(RULE, v1({"command": ["deepspeed", "t.py"]}, workers=1), after=AFTER).message
    assert "ssh" in refusal(RULE, v1({"command": ["deepspeed", "--hostfile=/h", "t.py"]}), after=AFTER).message


@pytest.mark.parametrize(
    "script",
    [
        'torchrun --node_rank "${HOSTNAME##*-}" t.py',
        "R=$(hostname | awk -F- '{print $NF}'); python t.py $R",
        "case $(hostname) in *-master-0) r=0;; esac",
        "python -c \"import socket; print(socket.gethostname().split('-')[-1])\"",
    ],
)
def test_a_rank_from_the_host_name_is_refused(script: str) -> None:
    """The same text would give other ranks in v2."""
    finding = refusal(RULE, v1({"command": ["bash", "-c", script]}, workers=1), after=AFTER)
    assert "the rank is taken from the host name" in finding.message
    assert "$RANK" in finding.fix


@pytest.mark.parametrize(
    ("flag", "workers", "text"),
    [("--nnodes=3", 2, "--nnodes=3 is kept: flags win over PET_NNODES"), ("--nnodes=3", 1, "does not fit the 2 pods")],
)
def test_a_fixed_number_of_nodes_is_pointed_out(flag: str, workers: int, text: str) -> None:
    """Right or wrong, it beats PET_NNODES."""
    alone(RULE, v1({"command": ["torchrun", flag, "t.py"]}, workers=workers), after=AFTER).says("warning", text, at=AT)


def test_world_size_as_number_of_nodes() -> None:
    """Right while there is one process per node, else torchrun waits for ever."""
    command = {"command": ["sh", "-c", "torchrun --nnodes=$WORLD_SIZE --node_rank=$RANK t.py"]}
    assert alone(RULE, v1(command, workers=1), after=AFTER).findings == []
    ran = alone(RULE, v1(command, workers=1, spec={"nprocPerNode": "4"}), after=AFTER)
    ran.says("warning", r"--nnodes=\$WORLD_SIZE is 8 here, with 2 pods", at=AT)


def test_flags_of_a_script_are_not_torchruns() -> None:
    """They are kept, and told apart."""
    ran = alone(RULE, v1({"command": ["python", "t.py", "--nnodes=7"]}), after=AFTER)
    ran.says("note", "belong to the script, not to torchrun", at=AT)


def test_torchrun_behind_another_program() -> None:
    """What that program reads cannot be seen."""
    alone(RULE, v1({"command": ["my-wrapper", "torchrun", "t.py"]}), after=AFTER).says(
        "warning", "torchrun is started by another program", at=AT
    )


def test_workers_alone_had_no_rendezvous() -> None:
    """Now they train together, unless the flags already said where."""
    data = v1({"command": ["torchrun", "t.py"]}, master=False, workers=2)
    alone(RULE, data, after=AFTER).says("note", "each pod trained alone")
    data = v1({"command": ["torchrun", "--rdzv_endpoint=x:1", "t.py"]}, master=False, workers=2)
    assert alone(RULE, data, after=AFTER).findings == []


@pytest.mark.parametrize(
    "words", [["python", "t.py", "--dist-url", "tcp://10.0.0.1:29500"], ["torchrun", "--master_addr=10.0.0.1", "t.py"]]
)
def test_a_fixed_address_is_pointed_out(words: list[str]) -> None:
    """Of several pods; one pod does not care."""
    alone(RULE, v1({"command": words}, workers=1), after=AFTER).says("warning", r"fixed address 10\.0\.0\.1")
    assert alone(RULE, v1({"command": words}), after=AFTER).findings == []


def test_the_entrypoint_of_several_pods_cannot_be_seen() -> None:
    """A note; it gets the v1 variables."""
    ran = alone(RULE, v1({"command": None, "args": ["x"]}, workers=1), after=AFTER)
    ran.says("note", "the image's entrypoint starts the training", at=MAIN)


def test_plain_python_stays_one_process() -> None:
    """With several GPUs in the pod that is worth a note."""
    gpus = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    alone(RULE, v1(gpus), after=AFTER).says("note", "plain python is one process per pod", at=AT)
    assert alone(RULE, v1({"resources": {"limits": {"nvidia.com/gpu": "1"}}}), after=AFTER).findings == []
