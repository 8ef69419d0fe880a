"""The whole trainer: what it resumes from, how it ends, and what it says then."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.train import tiny
from tests.train.trainer import Ran, command, environ, train


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def quiet(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Two ranks, which nobody disturbs."""
    ran = train(base, tmp_path_factory.mktemp("quiet"), 2)
    assert ran.code == 0, ran.log
    return ran


def disturbed(
    base: Path, out: Path, act: Callable[[subprocess.Popen[str]], None], restarts: int = 0, **flags: str
) -> Ran:
    """Two ranks; `act` when step 6 is done for the first time."""
    with subprocess.Popen(
        command(base, out, 2, **flags),
        env=environ(PET_MAX_RESTARTS=str(restarts)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout
        seen = []
        for line in process.stdout:
            seen.append(line)
            if line.startswith("step 6/") and sum(each.startswith("step 6/") for each in seen) == 1:
                act(process)
        return Ran(process.wait(), "".join(seen), out)


def steps_of(log: str) -> list[int]:
    return [int(step) for step in re.findall(r"^step (\d+)/", log, re.M)]


# --- resume ------------------------------------------------------------------------------------


def test_killed_and_resumed_is_as_if_nothing_had_happened(base: Path, quiet: Ran, tmp_path: Path) -> None:
    """SIGKILL to all; the second run says from where it goes on, and every loss is equal to the last bit."""
    killed = disturbed(base, tmp_path, lambda process: os.killpg(process.pid, signal.SIGKILL))
    assert killed.code < 0
    again = train(base, tmp_path, 2)
    assert again.code == 0, again.log
    assert "resumed from step 4" in again.log
    assert steps_of(again.log) == list(range(5, 13))
    # What a killed process had not written yet is missing among the first four.
    assert again.losses[-8:] == quiet.losses[-8:]


def test_told_to_end_saves_and_goes_on_later(base: Path, quiet: Ran, tmp_path: Path) -> None:
    """SIGTERM to the launcher: saved after the step, exit code 143, nothing done twice."""
    told = disturbed(base, tmp_path, lambda process: process.send_signal(signal.SIGTERM))
    assert told.code == 143, told.log
    last = steps_of(told.log)[-1]
    assert f"saved step {last}" in told.log
    again = train(base, tmp_path, 2)
    assert steps_of(again.log)[0] == last + 1
    assert again.losses == quiet.losses


def test_a_rank_that_dies_is_restarted_in_its_place(base: Path, quiet: Ran, tmp_path: Path) -> None:
    def kill_a_rank(process: subprocess.Popen[str]) -> None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)

    ran = disturbed(base, tmp_path, kill_a_rank, restarts=1)
    assert ran.code == 0, ran.log
    assert "was ended by SIGKILL" in ran.log
    assert "resumed from step 4" in ran.log
    assert ran.losses == quiet.losses


def test_goes_on_with_another_number_of_ranks(base: Path, quiet: Ran, tmp_path: Path) -> None:
    """Saved by two, loaded by one and by three: the curve goes on within rounding."""
    first = train(base, tmp_path, 2, checkpoint__every="8", train__steps="8")
    assert first.code == 0, first.log
    for ranks in (1, 3):
        folder = tmp_path / f"on-{ranks}"
        shutil.copytree(tmp_path / "step-00000008", folder / "step-00000008")
        ran = train(base, folder, ranks)
        assert ran.code == 0, ran.log
        # The schedule is that of 12 steps from here on, of 8 before.
        assert steps_of(ran.log) == [9, 10, 11, 12]
        assert ran.losses[-1] == pytest.approx(quiet.losses[-1], abs=0.2)


def test_settings_of_now_count_after_a_resume(base: Path, tmp_path: Path) -> None:
    assert train(base, tmp_path, train__steps="4").code == 0
    again = train(base, tmp_path, train__steps="6", optim__lr="1e-3", optim__schedule="constant")
    assert again.code == 0, again.log
    assert [line["lr"] for line in again.metrics[4:]] == [1e-3, 1e-3]


def test_a_run_that_is_done_does_nothing_more(base: Path, quiet: Ran) -> None:
    again = train(base, quiet.folder, 2)
    assert again.code == 0
    assert steps_of(again.log) == []


# --- forms -------------------------------------------------------------------------------------


def test_torchrun_does_as_well(base: Path, quiet: Ran, tmp_path: Path) -> None:
    done = subprocess.run(
        command(base, tmp_path, 2, launcher="torch.distributed.run"),
        env=environ(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert Ran(0, done.stdout, tmp_path).losses == quiet.losses


def test_everything_at_once(tmp_path: Path) -> None:
    """A Granite with tied weights in bf16, offloaded, recomputed, unpacked, accumulated; merged adapters come out."""
    base = tiny.write(tmp_path, tiny.granite())
    ran = train(
        base, tmp_path / "out", 2,
        train__precision="bf16", parallel__mode="fsdp", parallel__cpu_offload="true",
        parallel__activation_checkpointing="true", data__packing="false", train__global_batch="12",
        train__micro_batch="2", lora__rank="4", lora__dropout="0.1", optim__schedule="linear", optim__warmup_steps="3",
        export__kind="merged",
    )  # fmt: skip
    assert ran.code == 0, ran.log
    assert ran.losses[-1] < ran.losses[0]
    assert (tmp_path / "out/export/model.safetensors").stat().st_size > 10_000


def test_chats_are_learnt(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "chat"
    folder.mkdir()
    (folder / "model").symlink_to(base / "model")
    turns = [
        {"messages": [{"role": "user", "content": f"w{i % 60}"}, {"role": "assistant", "content": f"w{i % 60 + 1}"}]}
        for i in range(300)
    ]
    (folder / "docs.jsonl").write_text("\n".join(map(json.dumps, turns)))
    template = folder / "chat.jinja"
    template.write_text(
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }} </s> {% endgeneration %}"
        "{% else %}<s> {{ m.content }} {% endif %}{% endfor %}"
    )
    ran = train(folder, tmp_path / "out", data__chat_template=str(template))
    assert ran.code == 0, ran.log
    assert ran.losses[-1] < 0.8 * ran.losses[0]


def test_nothing_is_done_before_the_settings_are_right(base: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    ran = train(base, tmp_path, train__precision="fp8")
    assert ran.code == 78
    assert "--train.precision: train.precision is 'fp8'; there are bf16, fp32" in ran.log
    assert "Traceback" not in ran.log
    assert time.monotonic() - began < 5
    assert not list(tmp_path.iterdir())


# --- how it ends -------------------------------------------------------------------------------


def spoil_data(folder: Path) -> None:
    file = folder / "docs.jsonl"
    file.unlink()
    file.write_text('{"text": "w1 w2 w3"}\n{"text": \n')


def no_model(folder: Path) -> None:
    (folder / "model").unlink()


def nothing(folder: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("spoil", "flags", "code", "words"),
    [
        (spoil_data, {}, 65, "docs.jsonl:2"),
        (no_model, {}, 66, "model"),
        (nothing, {"optim__lr": "1e30", "train__max_grad_norm": "0"}, 67, "in step"),
        (nothing, {"train__steps": "500", "train__epochs": "1"}, 69, "the data ended after"),
        (nothing, {"parallel__mode": "none", "checkpoint__resume": "77"}, 74, "77"),
        (nothing, {"checkpoint__url": "/proc/none"}, 73, "/proc/none"),
    ],
)
def test_ends_with_a_reason_in_one_line(
    base: Path, tmp_path: Path, spoil: Callable[[Path], None], flags: dict[str, str], code: int, words: str
) -> None:
    folder = tmp_path / "base"
    folder.mkdir()
    for name in ("model", "docs.jsonl"):
        (folder / name).symlink_to(base / name)
    spoil(folder)
    ran = train(folder, tmp_path / "out", **flags)
    assert ran.code == code, ran.log
    last = ran.log.strip().splitlines()[-1]
    assert last.startswith("trainjob.train: ")
    assert last.endswith(f"(exit code {code})")
    assert words in last


def test_more_ranks_than_rows(base: Path, tmp_path: Path) -> None:
    """The launcher hands on the code and names the reason."""
    ran = train(base, tmp_path, 3, train__global_batch="2")
    assert ran.code == 72, ran.log
    assert "3 ranks share the 2 rows of a step" in ran.log.strip().splitlines()[-1]


def test_a_run_that_hangs_is_ended(base: Path, tmp_path: Path) -> None:
    """A rank that stops answering: the watchdog of the other one ends the run, and says which step was the last."""

    def freeze_a_rank(process: subprocess.Popen[str]) -> None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGSTOP)

    ran = disturbed(base, tmp_path, freeze_a_rank, report__watchdog="3")
    assert ran.code == 80, ran.log
    assert "nothing went on for" in ran.log
