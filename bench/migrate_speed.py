"""How fast `migrate` is, and how much memory a long stream takes.

    python bench/migrate_speed.py             both measurements; exit code 1 if a target is missed
    python bench/migrate_speed.py --profile   where the time goes, by function

The input is made of migration/cases: real jobs of all kinds, good ones and refused ones, under names
that differ. The first measurement calls the library in this process, on one core. The second pipes a
stream into the `migrate` program itself.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import platform
import pstats
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from trainjob.kube import yaml
from trainjob.migrate import migrate_text

CASES = Path(__file__).resolve().parents[1] / "migration" / "cases"
MANIFESTS = 1_000
DOCUMENTS = 10_000
RUNS = 5
MIN_JOBS_PER_SECOND = 200
MAX_PEAK_MB = 200


def renamed(text: str, number: int) -> str:
    """The text with another job name of the same length (a longer one could be refused)."""
    match = re.search(r"^  name: ([a-z0-9][a-z0-9-]{5,})$", text, re.M)
    if match is None:
        return text
    name = match[1]
    return text.replace(name, f"{name[:-5]}{number:05d}")


def manifests(count: int) -> list[str]:
    """Whole files, as people keep them."""
    texts = [f.read_text("utf-8") for f in sorted(CASES.glob("*/before.*"))]
    return [renamed(texts[i % len(texts)], i) for i in range(count)]


def documents() -> list[str]:
    """Every document of the cases that can be read; one that cannot would end the stream without output."""
    found = []
    for file in sorted(CASES.glob("*/before.*")):
        for doc in yaml.split(file.read_text("utf-8"), file.name):
            if not any(f.unreadable for f in migrate_text(doc.text).findings):
                found.append(doc.text.removeprefix("---\n"))
    return found


def migrate_all(texts: list[str]) -> int:
    """Migrates every text; the number of jobs that were in them, converted or refused."""
    jobs = 0
    for text in texts:
        result = migrate_text(text)
        jobs += result.converted + result.refused
    return jobs


def speed() -> bool:
    """1,000 manifests in this process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    texts = manifests(MANIFESTS)
    wall, cpu, jobs = [], [], 0
    for _ in range(RUNS):
        start, used = time.perf_counter(), time.process_time()
        jobs = migrate_all(texts)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    seconds, busy = statistics.median(wall), statistics.median(cpu)
    print(f"{MANIFESTS:,} manifests, {jobs:,} jobs, one core, median of {RUNS} runs")
    print(f"  wall  {seconds:6.2f} s  {jobs / seconds:6.0f} jobs/s   target >= {MIN_JOBS_PER_SECOND}")
    print(f"  CPU   {busy:6.2f} s  {jobs / busy:6.0f} jobs/s")
    return jobs / seconds >= MIN_JOBS_PER_SECOND


def stream(texts: list[str]) -> Iterator[str]:
    for i in range(DOCUMENTS):
        yield "---\n"
        text = renamed(texts[i % len(texts)], i)
        yield text if text.endswith("\n") else f"{text}\n"


def feed(pipe: IO[str], texts: list[str]) -> None:
    with pipe:
        pipe.writelines(stream(texts))


def memory() -> bool:
    """10,000 documents through a pipe into the program."""
    texts = documents()
    program = Path(sys.executable).with_name("migrate")
    command = [str(program)] if program.exists() else [sys.executable, "-m", "trainjob", "migrate"]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as report:
        start = time.perf_counter()
        process = subprocess.Popen([*command, "-"], stdin=subprocess.PIPE, stdout=out, stderr=report, text=True)
        assert process.stdin is not None
        writer = threading.Thread(target=feed, args=(process.stdin, texts))
        writer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        writer.join()
        seconds = time.perf_counter() - start
        out.seek(0)
        written = sum(line.rstrip() == "kind: TrainJob" for line in out)
        report.seek(0)
        summary = report.read().splitlines()[-1]
    peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3 / 1.024)
    size = sum(map(len, stream(texts))) / 1e6
    busy = usage.ru_utime + usage.ru_stime
    print(f"{DOCUMENTS:,} documents ({size:.0f} MB) through `migrate -`")
    print(f"  wall  {seconds:6.2f} s  {DOCUMENTS / seconds:6.0f} documents/s, {written:,} TrainJobs")
    print(f"  CPU   {busy:6.2f} s  {DOCUMENTS / busy:6.0f} documents/s")
    print(f"  peak  {peak:6.0f} MB                     target < {MAX_PEAK_MB}")
    print(f"  {summary}")
    if process.returncode not in (0, 1) or not written:
        print(f"  migrate failed with exit code {process.returncode}")
        return False
    return peak < MAX_PEAK_MB


def profile() -> None:
    texts = manifests(MANIFESTS)
    migrate_all(texts[:100])
    profiler = cProfile.Profile()
    profiler.runcall(migrate_all, texts)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--profile", action="store_true", help="show where the time goes instead")
    if parser.parse_args().profile:
        profile()
        return 0
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores")
    met = [memory(), speed()]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
