"""The two halves of the package as a library: build a new TrainJob, and migrate an old PyTorchJob.

python examples/build_and_migrate.py pytorchjob.yaml > trainjobs.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path

from trainjob.builder import train_job
from trainjob.migrate import migrate_text
from trainjob.targets import target


def main(file: Path) -> int:
    rhoai = target("rhoai-3.5")  # Trainer 2.1; leave it out for the newest
    new = train_job(
        name="evaluate",
        runtime="torch-lora-1gpu",
        image="registry.example.com/team/tune:1.0",
        command=["torchrun", "/workspace/evaluate.py"],
        queue="team-a",
        target=rhoai,
    )
    old = migrate_text(file.read_bytes(), file=str(file), target=rhoai)
    for finding in old.findings:  # what is lost, what behaves differently, and what to do about it
        print(finding.text(), file=sys.stderr)
    if old.text:
        print(old.text, "---", sep="" if old.text.endswith("\n") else "\n")
    print(new.to_yaml(), end="")
    return old.exit_code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
