from __future__ import annotations

import errno
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.train.watch.programs import run
from trainjob.launch.policy import Failure
from trainjob.train.faults import Code, TrainError
from trainjob.train.watch import last_words
from trainjob.train.watch.last_words import ERROR_FILE, clear, end, explain

BAD = TrainError(Code.BAD_DATA, "/data/a.jsonl:7: not JSON", "correct that line")
# torch 2.13 on an A100, and gloo's and NCCL's words for a peer that is gone
CUDA = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB of which 1.10 GiB is "
    "free. Including non-PyTorch memory, this process has 78.14 GiB memory in use. Of the allocated memory 70.02 GiB "
    "is allocated by PyTorch, and 6.51 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory "
    "is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.1]:40001"
SLOW = "[/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 4000ms for recv operation to complete"


def raised(error: BaseException) -> BaseException:
    """With a traceback."""
    try:
        raise error
    except BaseException as caught:
        return caught


def agent(tmp_path: Path, rank: int) -> dict[str, str]:
    """The environment of a worker of torch's elastic agent."""
    file = tmp_path / "attempt_0" / str(rank) / "error.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), ERROR_FILE: str(file)}


def told(environ: dict[str, str]) -> Any:
    return json.loads(Path(environ[ERROR_FILE]).read_text())["message"]


def test_a_foreseen_fault_is_its_code_reason_and_fix() -> None:
    words = explain(BAD)
    assert (words.code, words.line) == (65, "BAD_DATA: /data/a.jsonl:7: not JSON; correct that line")


def test_gpu_memory_in_one_line() -> None:
    import torch

    words = explain(torch.OutOfMemoryError(CUDA))
    assert words.code == 82
    assert words.line == (
        "OUT_OF_MEMORY: the GPU has no memory left: 2.00 GiB asked for, 1.10 GiB free, 79.25 GiB in the GPU, "
        "70.02 GiB held by tensors, 6.51 GiB kept unused by torch; set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:"
        "True, or lower train.micro_batch or data.seq_length, set parallel.activation_checkpointing, shard over more "
        "GPUs (parallel.mode fsdp), or train adapters (lora.rank)"
    )
    little = explain(torch.OutOfMemoryError(CUDA.replace("6.51 GiB", "212.00 MiB"))).line
    assert "; lower train.micro_batch" in little
    assert "the GPU has no memory left: out of memory" in explain(torch.OutOfMemoryError("out of memory")).line


def test_host_memory() -> None:
    import torch

    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 50)
    words = explain(caught.value)
    assert words.code == 82
    assert words.line.startswith("OUT_OF_MEMORY: the host has no memory left: 4194304.00 GiB were asked for; ")
    assert explain(MemoryError()).code == 82


def test_a_full_disk_wherever_it_is_said() -> None:
    with pytest.raises(OSError, match="No space") as caught, Path("/dev/full").open("w") as full:
        full.write("x" * 100_000)
    assert explain(caught.value).code == 73
    with pytest.raises(RuntimeError) as wrapped:
        raise RuntimeError("the file could not be written") from caught.value
    assert explain(wrapped.value).code == 73
    words = explain(OSError(errno.EROFS, "Read-only file system", "/checkpoints/x"))
    assert words.line.startswith("NO_SPACE: nothing can be written: [Errno 30] Read-only file system: '/checkpoints/x'")
    assert explain(RuntimeError("I/O error: No space left on device (os error 28)")).code == 73
    assert explain(OSError(errno.EIO, "Input/output error")).code == 1


@pytest.mark.parametrize("text", [GLOO, SLOW, "NCCL error: ncclRemoteError: A call failed possibly due to ..."])
def test_a_lost_peer_is_not_this_ranks_fault(text: str) -> None:
    words = explain(RuntimeError(text))
    assert (words.code, words.victim) == (1, True)
    said = text.replace("/pytorch/third_party/", "")
    assert words.line.startswith(f"PEER_LOST: another rank went away or does not answer ({said[:30]}")
    assert not explain(ValueError(text)).victim


def test_a_store_that_is_gone_is_a_lost_peer() -> None:
    import torch.distributed as dist

    assert explain(dist.DistNetworkError("The client socket has timed out\nC++ stack")).victim
    assert not explain(dist.DistBackendError("NCCL error: ncclInvalidUsage")).victim


def test_anything_else_keeps_its_name() -> None:
    words = explain(KeyError("nope"))
    assert (words.code, words.line, words.foreseen) == (1, "KeyError: 'nope'", False)
    assert explain(ValueError()).line == "ValueError: ValueError"
    assert len(explain(ValueError("x" * 5000)).line) < 400
    assert explain(KeyboardInterrupt()).code == 130
    assert [explain(SystemExit(code)).code for code in (None, 0, 3, "text")] == [0, 0, 3, 1]


def test_a_fault_that_was_handled_on_the_way_is_not_the_reason() -> None:
    def another() -> None:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            raise ValueError("another thing") from None

    with pytest.raises(ValueError, match="another") as caught:
        another()
    assert explain(caught.value).code == 1


def test_alone_it_prints_the_traceback_and_then_the_line(tmp_path: Path) -> None:
    log, termination = io.StringIO(), tmp_path / "termination-log"
    assert end(raised(BAD), environ={}, log=log, termination=termination) == 65
    first, *_, last = log.getvalue().splitlines()
    assert first == "Traceback (most recent call last):"
    assert last == "trainjob.train: BAD_DATA: /data/a.jsonl:7: not JSON; correct that line (exit code 65)"
    assert termination.read_text().splitlines()[:2] == [last, "Traceback (most recent call last):"]


def test_the_termination_message_fits_and_keeps_both_ends(tmp_path: Path) -> None:
    termination = tmp_path / "termination-log"

    def deep(levels: int) -> None:
        # Two frames in turn: equal ones in a row are folded by Python.
        if levels:
            (lambda: deep(levels - 1))()
        else:
            raise ValueError("ä" * 200)

    with pytest.raises(ValueError, match="ä") as caught:
        deep(50)
    end(caught.value, environ={}, log=io.StringIO(), termination=termination)
    content = termination.read_bytes()
    assert 4000 < len(content) <= 4096
    text = content.decode()
    assert text.startswith("trainjob.train: ValueError: ää")
    assert text.rstrip().endswith("ää")
    end(TrainError(Code.CONFIG, "ü" * 5000), environ={}, log=io.StringIO(), termination=termination)
    assert len(termination.read_bytes()) <= 4096
    assert termination.read_bytes().decode(errors="ignore").startswith("trainjob.train: CONFIG: üü")


def test_the_launcher_is_told_the_reason(tmp_path: Path) -> None:
    environ, log = agent(tmp_path, 0), io.StringIO()
    before = time.time()
    end(raised(BAD), environ=environ, log=log, termination=tmp_path / "t")
    failure = Failure(0, 65, told(environ)["extraInfo"]["py_callstack"])
    assert failure.words == ("rank 0 ended with exit code 65: BAD_DATA: /data/a.jsonl:7: not JSON; correct that line")
    assert before <= told(environ)["extraInfo"]["timestamp"] <= time.time()
    assert "Traceback" in log.getvalue(), "the agent was not given it"


def test_a_bug_is_shown_by_the_launcher_alone(tmp_path: Path) -> None:
    environ, log = agent(tmp_path, 1), io.StringIO()
    end(raised(KeyError("nope")), environ=environ, log=log, termination=tmp_path / "t")
    failure = Failure(1, 1, told(environ)["extraInfo"]["py_callstack"])
    assert failure.is_bug
    assert failure.error == "KeyError: 'nope'"
    assert failure.trace.startswith("Traceback")
    assert log.getvalue() == "trainjob.train: rank 1: KeyError: 'nope' (exit code 1)\n"


def test_an_error_of_several_lines_stays_what_it_is(tmp_path: Path) -> None:
    environ = agent(tmp_path, 0)
    end(raised(ValueError("first\nsecond")), environ=environ, log=io.StringIO(), termination=tmp_path / "t")
    assert Failure(0, 1, told(environ)["extraInfo"]["py_callstack"]).error == "ValueError: first second"


def test_torchruns_own_reader_understands_the_file(tmp_path: Path) -> None:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

    environ = agent(tmp_path, 0)
    end(raised(BAD), environ=environ, log=io.StringIO(), termination=tmp_path / "t")
    failure = ProcessFailure(local_rank=0, pid=1, exitcode=65, error_file=environ[ERROR_FILE])
    assert failure.message["message"] == "BAD_DATA: /data/a.jsonl:7: not JSON; correct that line"
    assert abs(failure.timestamp - time.time()) < 5


def test_the_first_rank_of_a_pod_tells_the_traceback_the_others_one_line(tmp_path: Path) -> None:
    logs = [io.StringIO() for _ in range(3)]
    for rank, log in enumerate(logs):
        error = raised(BAD) if rank < 2 else raised(RuntimeError(GLOO))
        end(error, environ=agent(tmp_path, rank), log=log, termination=tmp_path / "t")
    assert [len(log.getvalue().splitlines()) > 1 for log in logs] == [True, False, False]
    assert logs[1].getvalue().startswith("trainjob.train: rank 1: BAD_DATA: ")
    assert logs[2].getvalue().startswith("trainjob.train: rank 2: PEER_LOST: ")
    assert (tmp_path / "t").read_text().startswith("trainjob.train: rank 0: BAD_DATA: "), "not that of a victim"


def test_a_victim_speaks_when_nobody_else_did(tmp_path: Path) -> None:
    end(raised(RuntimeError(GLOO)), environ={}, log=io.StringIO(), termination=tmp_path / "t")
    assert (tmp_path / "t").read_text().startswith("trainjob.train: PEER_LOST: ")


def test_being_told_to_end_is_no_drama(tmp_path: Path) -> None:
    log = io.StringIO()
    error = raised(TrainError(Code.TOLD, "told to end; step 12 is saved"))
    assert end(error, environ={}, log=log, termination=tmp_path / "t") == 143
    assert log.getvalue() == "trainjob.train: TOLD: told to end; step 12 is saved (exit code 143)\n"
    assert (tmp_path / "t").read_text() == log.getvalue()


def test_an_attempt_that_begins_takes_the_old_reason_back(tmp_path: Path) -> None:
    termination = tmp_path / "t"
    clear({}, termination)
    assert not termination.exists(), "outside of a pod there is none"
    termination.write_text("an old reason")
    clear({"LOCAL_RANK": "1"}, termination)
    assert termination.read_text() == "an old reason"
    clear({"LOCAL_RANK": "0"}, termination)
    assert termination.read_text() == ""


def test_where_nothing_can_be_written_the_code_is_still_right(tmp_path: Path) -> None:
    closed = io.StringIO()
    closed.close()
    environ = {ERROR_FILE: str(tmp_path / "no" / "such" / "folder" / "e.json")}
    assert end(raised(BAD), environ=environ, log=closed, termination=tmp_path / "no" / "t") == 65


def test_it_needs_no_torch() -> None:
    script = """
import sys
from trainjob.train.faults import Code, TrainError
from trainjob.train.watch import last_words
code = last_words.end(TrainError(Code.CONFIG, "wrong"))
assert "torch" not in sys.modules
sys.exit(code)
"""
    done = run(script)
    assert done.returncode == 78
    assert "CONFIG: wrong (exit code 78)" in done.stderr


def test_kubernetes_reads_4096_bytes() -> None:
    assert Path("/dev/termination-log") == last_words.TERMINATION_LOG
    assert len(last_words._message("x" * 9000, "y" * 9000)) <= 4096
