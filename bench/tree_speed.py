"""How long `migrate DIR -o OUT` takes for a repository of 2,000 files, on one core.

    python bench/tree_speed.py      exit code 1 if the target is missed

The tree is what a platform team keeps: 20 teams with a kustomize base of 20 jobs each (made of
migration/cases under other names) and two overlays, one that only sets a namespace and one that patches
a PyTorchJob, prefixes names and sets an image; 1,000 jobs in plain files; the rest are Services. The
program and every kustomize process that it starts share one core.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trainjob.kube import yaml
from trainjob.kustomize import find_engine
from trainjob.migrate import migrate_text

CASES = Path(__file__).resolve().parents[1] / "migration" / "cases"
FILES = 2_000
TEAMS = 20
JOBS = 20
PLAIN = 1_000
RUNS = 3
MAX_SECONDS = 20
PATCH = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: job-000
  labels: {team: nlp}
spec:
  runPolicy:
    activeDeadlineSeconds: 3600
"""


def jobs() -> list[str]:
    """Documents of the cases that are one whole job of a fixed name, and are converted without a refusal."""
    found = []
    for file in sorted(CASES.glob("*/before.yaml")):
        text = file.read_text("utf-8")
        result = migrate_text(text)
        if result.converted != 1 or result.refused:
            continue
        objects = [d.data for d in yaml.load(text) if d.data]
        if len(objects) == 1 and objects[0]["kind"] == "PyTorchJob" and "name" in objects[0]["metadata"]:
            found.append(objects[0])
    return [yaml.dump({**d, "metadata": {"name": "job-NNN"}}) for d in found]


def fill(root: Path) -> int:
    """Write the tree; the number of files."""
    count = 0

    def write(path: Path, text: str) -> None:
        nonlocal count
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        count += 1

    texts = jobs()
    for team in range(TEAMS):
        folder = root / f"team-{team:02}"
        names = [f"job-{i:03}" for i in range(JOBS)]
        for i, name in enumerate(names):
            write(folder / "base" / f"{name}.yaml", texts[(team + i) % len(texts)].replace("job-NNN", name))
        listed = "".join(f"- {n}.yaml\n" for n in names)
        write(folder / "base/kustomization.yaml", f"resources:\n{listed}")
        write(folder / "dev/kustomization.yaml", "resources:\n- ../base\nnamespace: dev\n")
        write(folder / "prod/more.yaml", PATCH)
        write(
            folder / "prod/kustomization.yaml",
            "resources:\n- ../base\nnamespace: prod\nnamePrefix: p-\n"
            "images:\n- {name: registry.example.com/team/train, newTag: '2'}\npatches:\n- path: more.yaml\n",
        )
    for i in range(PLAIN):
        write(root / f"jobs/{i // 50:02}/job-{i:04}.yaml", texts[i % len(texts)].replace("job-NNN", f"job-{i:04}"))
    while count < FILES:
        i = count
        write(root / f"services/s{i:03}.yaml", f"# {i}\napiVersion: v1\nkind: Service\nmetadata: {{name: s{i:03}}}\n")
    return count


def main() -> int:
    """Measure, print, compare with the target."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    wall, busy = [], []
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "tree")
        count = fill(root)
        for run in range(RUNS):
            start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [sys.executable, "-m", "trainjob", "migrate", str(root), "-o", f"{scratch}/out-{run}", "-q"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            wall.append(time.perf_counter() - start)
            now = resource.getrusage(resource.RUSAGE_CHILDREN)
            busy.append(now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime)
            summary = done.stderr.splitlines()[-1]
            if done.returncode == 2 or " 0 errors" not in summary:
                print(summary)
                return 1
    print(f"{count:,} files, {TEAMS} overlays with patches, {platform.machine()}, one core, {find_engine()}")
    print(f"  {summary}")
    median = statistics.median(wall)
    print(f"  wall {median:5.1f} s (median of {RUNS})   target <= {MAX_SECONDS}")
    print(f"  CPU  {statistics.median(busy):5.1f} s, kustomize included")
    return int(median > MAX_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
