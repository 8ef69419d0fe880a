"""Jobs of the reference trainer on the cluster: a small model and its data on a claim, and what the run left there."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.kube import Kubectl, claim
from tests.e2e.survival import Disturbed, folder_of
from tests.e2e.test_storage import TWO_NODES, stand_in
from tests.train import tiny
from trainjob.builder import train_job
from trainjob.catalog import Runtime
from trainjob.emit import TrainJob
from trainjob.storage import Claim

COMMAND = ["trainjob", "launch", "-m", "trainjob.train"]
SETTINGS = {
    "MODEL_PATH": "/checkpoints/base/model",
    "MODEL_INIT": "random",
    "DATA_TRAIN": "/checkpoints/base/docs.jsonl",
    "DATA_SEQ_LENGTH": "128",
    "TRAIN_PRECISION": "fp32",
    "TRAIN_STEPS": "40",
    "OPTIM_LR": "3e-3",
    "CHECKPOINT_EVERY": "5",
    "CHECKPOINT_URL": "/checkpoints/run",
    "REPORT_METRICS": "/checkpoints/run/metrics.jsonl",
}
LORA = {"LORA_RANK": "8", "OPTIM_LR": "1e-2"}


@dataclass
class FineTune(Disturbed):
    """One job, in the namespace of `kubectl`, on a claim that its pods share."""

    kubectl: Kubectl
    name: str
    nodes: int = 2
    settings: dict[str, str] = field(default_factory=dict)
    claim_of: str = ""  # another job, whose claim and checkpoints this one goes on with
    s3_secret: str = ""  # checkpoints in s3://training/NAME instead of the claim

    @property
    def claim(self) -> str:
        return f"{self.claim_of or self.name}-claim"

    def submit(self) -> FineTune:
        """Makes the claim with model and data, the runtime, and the job."""
        runtime = stand_in(TWO_NODES)
        self.kubectl.apply([claim(self.claim), runtime.manifest])
        self.kubectl.wait_for(
            "the claim is bound", lambda: self.kubectl.get("pvc", self.claim)["status"].get("phase") == "Bound"
        )
        if not self.claim_of:
            tiny.write(self.folder / "base")
        self.kubectl.run("create", "-f", "-", stdin=self.job(runtime).to_yaml())
        return self

    def job(self, runtime: Runtime) -> TrainJob:
        """What a user would write."""
        settings = {**SETTINGS, **self.settings}
        shared = Claim(self.claim, "rwx")
        where: dict[str, Any] = {"checkpoints": shared}
        if self.s3_secret:
            where = {
                "checkpoints": f"s3://training/{self.name}", "s3_secret": self.s3_secret, "claims": {"/base": shared},
            }  # fmt: skip
            settings = {key: value.replace("/checkpoints/", "/base/") for key, value in settings.items()}
            del settings["CHECKPOINT_URL"]
        return train_job(
            name=self.name,
            runtime=runtime,
            nodes=self.nodes,
            allow_multi_node="the test of several nodes",
            procs_per_node=1,
            command=COMMAND,
            env={f"TRAINJOB_TRAIN_{key}": value for key, value in settings.items()},
            **where,
        )

    @property
    def folder(self) -> Path:
        """Where this machine sees the claim."""
        return folder_of(self.kubectl, self.claim)

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl, of each step the last."""
        try:
            lines = (self.folder / "run/metrics.jsonl").read_text().splitlines()
        except OSError:
            return []
        whole = [json.loads(line) for line in lines if line.endswith("}")]
        return list({line["step"]: line for line in whole}.values())

    def losses(self) -> list[float]:
        return [line["loss"] for line in self.metrics()]

    def wait_step(self, step: int, seconds: float = 240) -> None:
        self.kubectl.wait_for(
            f"step {step} of {self.name}", lambda: any(line["step"] >= step for line in self.metrics()), seconds
        )

    def forget(self, *steps: int) -> None:
        """Removes checkpoints, as if the job had not come so far."""
        for step in steps:
            shutil.rmtree(self.folder / f"run/step-{step:08d}")

    def log(self) -> str:
        """Of the first pod."""
        return self.kubectl.logs(self.name, 0)

    def resumed_from(self) -> int | None:
        """The step that the log names."""
        found = re.search(r"resumed from step (\d+)", self.log())
        return int(found[1]) if found else None

    def last_words(self) -> list[str]:
        """Termination messages of the job's pods."""
        found = []
        for pod in self.kubectl.pods(self.name):
            for status in pod["status"].get("containerStatuses", []):
                found.append(status.get("state", {}).get("terminated", {}).get("message", ""))
        return [words for words in found if words]
