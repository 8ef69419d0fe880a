"""How a command line starts its training: launcher, shell, flags, and whether it reads v1's env."""

from __future__ import annotations

from typing import Any

import pytest

from trainjob.migrate.launch import Style, classify, reads_env, reads_v1_env, shell_script

T, R, L = Style.TORCHRUN, Style.TORCH_RUN, Style.TORCH_LAUNCH
A, D, P, E, O = Style.ACCELERATE, Style.DEEPSPEED, Style.PYTHON, Style.ENTRYPOINT, Style.OTHER  # noqa: E741

# (command, args, style, behind a shell, bare)
LINES: list[tuple[Any, Any, Style, bool, bool]] = [
    (["torchrun", "t.py"], None, T, False, True),
    (["/opt/conda/bin/torchrun"], ["t.py"], T, False, True),
    (["torchrun", "--nnodes=$(WORLD_SIZE)", "t.py"], None, T, False, False),
    (["torchrun", "--node_rank", "$(RANK)", "t.py"], None, T, False, False),
    (["torchrun", "--node_rank", "$(PET_NODE_RANK)", "t.py"], None, T, False, True),
    (["torchrun", "t.py", "--host", "$$MASTER_ADDR"], None, T, False, False),
    (["python", "-m", "torch.distributed.run", "t.py"], None, R, False, True),
    (["python3.11", "-u", "-m", "torch.distributed.run", "t.py"], None, R, False, True),
    (["python", "-W", "ignore", "-m", "torch.distributed.launch", "t.py"], None, L, False, True),
    (["python"], ["-m", "torch.distributed.launch", "t.py"], L, False, True),
    (["python", "/opt/conda/bin/torchrun", "t.py"], None, T, False, True),
    (["env", "OMP_NUM_THREADS=1", "torchrun", "t.py"], None, T, False, False),
    (["numactl", "--cpunodebind=0", "torchrun", "t.py"], None, T, False, False),
    (["my-wrapper", "--", "torchrun", "t.py"], None, T, False, False),
    (["sh", "-c", "torchrun t.py"], None, T, True, False),
    (["sh", "-c"], ["torchrun t.py"], T, True, False),
    (["/bin/bash", "-lc", "cd /w && torchrun t.py"], None, T, True, False),
    (["bash", "-c", "--", "torchrun t.py"], None, T, True, False),
    (["bash", "-euxo", "pipefail", "-c", "torchrun t.py"], None, T, True, False),
    (["bash", "--login", "-c", "exec torchrun t.py"], None, T, True, False),
    (["bash", "--rcfile", "/x", "-ic", "torchrun t.py"], None, T, True, False),
    (["tini", "-s", "--", "bash", "-c", "torchrun t.py"], None, T, True, False),
    (["env", "A=1", "sh", "-c", "torchrun t.py"], None, T, True, False),
    (["sh", "-c", "pip install -r r.txt; python -m torch.distributed.run t.py"], None, R, True, False),
    (["sh", "-c", "torchrun \\\n  --nnodes 2 \\\n  t.py\n"], None, T, True, False),
    (["sh", "-c", "(torchrun t.py) | tee log"], None, T, True, False),
    (["bash", "-c", "echo 'unclosed\ntorchrun t.py"], None, T, True, False),
    (["accelerate", "launch", "t.py"], None, A, False, False),
    (["python", "-m", "accelerate.commands.launch", "t.py"], None, A, False, False),
    (["bash", "-c", "accelerate launch --multi_gpu t.py"], None, A, True, False),
    (["accelerate", "config"], None, O, False, False),
    (["deepspeed", "--hostfile=/h", "t.py"], None, D, False, False),
    (["/usr/local/bin/ds", "t.py"], None, D, False, False),
    (["sh", "-c", "deepspeed t.py"], None, D, True, False),
    (["python", "t.py"], None, P, False, False),
    (["python3", "-u", "/a/t.py"], ["--x"], P, False, False),
    (["/usr/bin/python3.12", "-m", "pkg.train"], None, P, False, False),
    (["pypy3", "t.py"], None, P, False, False),
    (["python", "-c", "print(1)"], None, P, False, False),
    (["python", "t.py", "torchrun"], None, P, False, False),
    (["python", "launch.py", "sh", "-c", "torchrun t.py"], None, P, False, False),
    (["bash", "-c", "python t.py"], None, P, True, False),
    (["nsys", "profile", "python", "t.py"], None, P, False, False),
    (["sh", "-c", "./start.sh"], None, O, True, False),
    (["bash", "/start.sh"], None, O, False, False),
    (["composer", "t.py"], None, O, False, False),
    ([""], None, O, False, False),
    (None, None, E, False, False),
    ([], [], E, False, False),
    (None, ["--epochs", "3"], E, False, False),
    (None, ["t.py"], E, False, False),
    (None, ["python", "t.py"], P, False, False),
    (None, ["torchrun", "t.py"], T, False, False),
]


@pytest.mark.parametrize(("command", "args", "style", "shell", "bare"), LINES)
def test_command_lines(command: Any, args: Any, style: Style, shell: bool, bare: bool) -> None:
    """Style, shell and bareness of every kind of line that was seen."""
    launch = classify(command, args)
    assert (launch.style, launch.shell, launch.bare) == (style, shell, bare)


def test_the_table_is_long_enough() -> None:
    """Every style is in it."""
    assert len(LINES) >= 40
    assert {line[2] for line in LINES} == set(Style)


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        (
            ["torchrun", "--nproc_per_node=4", "--nnodes", "2", "t.py", "--nnodes=9"],
            {"nproc-per-node": "4", "nnodes": "2"},
        ),
        (["torchrun", "--standalone", "--nproc-per-node", "gpu", "t.py"], {"standalone": "", "nproc-per-node": "gpu"}),
        (["torchrun", "--rdzv_conf", "a=1,b=2", "-m", "pkg"], {"rdzv-conf": "a=1,b=2", "m": ""}),
        (["torchrun", "--no-python", "--", "x", "--y"], {"no-python": ""}),
        (
            ["sh", "-c", "torchrun --master_addr=$MASTER_ADDR --max-restarts 3 t.py"],
            {"master-addr": "$MASTER_ADDR", "max-restarts": "3"},
        ),
        (["deepspeed", "--hostfile", "/h", "t.py"], {"hostfile": "/h"}),
        (["torchrun", "--nnodes"], {"nnodes": ""}),
        (["python", "t.py", "--nnodes=3"], {}),
    ],
)
def test_flags_of_the_launcher(command: list[str], flags: dict[str, str]) -> None:
    """With `-` or `_`, with `=` or a space; those behind the script are the script's."""
    assert classify(command, None).flags == flags


@pytest.mark.parametrize(("value", "number"), [("4", 4), ("gpu", None), ("$X", None), ("", None), ("9" * 5000, None)])
def test_literal_numbers(value: str, number: int | None) -> None:
    """A number as written, or none."""
    assert classify(["torchrun", f"--nnodes={value}", "t.py"], None).literal("nnodes") == number
    assert classify(["torchrun", "t.py"], None).literal("nnodes") is None


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("x $RANK", True), ("x ${WORLD_SIZE}", True), ("x ${MASTER_PORT:-1}", True), ("x $(MASTER_ADDR)", True),
        ("x $$RANK", True), ("x $LOCAL_RANK", True), ("x $RANKS", False), ("x $PET_NODE_RANK", False),
        ("x RANK", False), ("x $(LOCAL_RANK)", False), ("x $MY_RANK", False),
    ],
)  # fmt: skip
def test_reading_v1s_variables_on_the_command_line(text: str, reads: bool) -> None:
    """By the shell, or by Kubernetes' `$(NAME)`; `$$` is an escape of `$`."""
    assert classify(["sh", "-c", text], None).reads_rank_env is reads


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("${HOSTNAME##*-}", True), ("${HOSTNAME: -1}", True), ("hostname | awk -F- '{print $3}'", True),
        ("echo $HOSTNAME | sed 's/.*-//'", True), ("case $H in *-worker-*) ;; esac", True),
        ("socket.gethostname().rsplit('-', 1)", True), ("os.environ['HOSTNAME'].split('-')", True),
        ("echo $HOSTNAME", False), ("hostname; date | cut -c1", False), ("python t.py --hostname x", False),
    ],
)  # fmt: skip
def test_a_rank_from_the_host_name(text: str, found: bool) -> None:
    """Only where a part of it is cut out."""
    assert bool(classify(["bash", "-c", text], None).rank_from_hostname) is found


@pytest.mark.parametrize(
    ("command", "args", "place"),
    [
        (["sh", "-c", "x"], [], (2, 0)),
        (["sh", "-c"], ["x", "y"], (2, 0)),
        (["bash", "-ec", "--", "x"], [], (3, 0)),
        (["bash", "-c", "-e", "x"], [], (3, 0)),
        (["bash", "+x", "-c", "x"], [], (3, 0)),
        (["bash", "-o", "pipefail", "-c", "x"], [], (4, 0)),
        (["env", "-i", "bash", "-c", "x"], [], (4, 2)),
        (["bash", "x.sh"], [], None),
        (["bash", "x.sh", "-c"], [], None),
        (["bash", "-c"], [], None),
        (["bash"], [], None),
        (["python", "bash", "-c", "x"], [], None),
        (["echo", *("x" for _ in range(9)), "sh", "-c", "x"], [], None),
        ([], [], None),
    ],
)
def test_where_a_shell_keeps_its_script(command: list[str], args: list[str], place: Any) -> None:
    """(index of the script, index of the shell), or nothing."""
    assert shell_script(command, args) == place


def test_many_processes() -> None:
    """Launchers that start one process per device."""
    many = {style for style in Style if classify(_line(style), None).many_processes}
    assert many == {T, R, L, A, D}


def _line(style: Style) -> list[str]:
    return next(command for command, args, found, shell, _ in LINES if found is style and not shell and not args) or []


@pytest.mark.parametrize(
    ("script", "env", "v1"),
    [
        ("os.environ['RANK']", True, True),
        ("dist.init_process_group('nccl')", True, True),
        ("init_method='env://'", True, True),
        ("os.environ['PET_NODE_RANK']", True, False),
        ("LOCAL_RANK", False, False),
        ("print('hello')", False, False),
    ],
)
def test_scripts_that_read_the_environment(script: str, env: bool, v1: bool) -> None:
    """PET_* is the same in both versions, so it is no v1 variable."""
    assert (reads_env(script), reads_v1_env(script)) == (env, v1)
