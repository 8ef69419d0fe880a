"""An estate of v1 jobs for the report: the cases of migration/, many times, as many teams would have them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainjob.kube import yaml

CASES = Path(__file__).parents[2] / "migration" / "cases"
TEAMS = ("vision", "nlp", "speech", "recsys", "genomics", "robotics", "platform")
WORDS = ("resnet", "llama", "whisper", "dlrm", "alphafold", "policy", "probe", "mistral", "clip", "bert")


def jobs() -> list[Any]:
    """Every PyTorchJob that is a document of its own in a case and can be read."""
    out = []
    for path in sorted(CASES.glob("*/before.yaml")):
        try:
            documents = yaml.load(path.read_text(encoding="utf-8"))
        except yaml.YamlError:
            continue
        out += [d.data for d in documents if isinstance(d.data, dict) and d.data.get("kind") == "PyTorchJob"]
    return out


def estate(count: int) -> Iterator[tuple[str, str]]:
    """(file, text) of `count` jobs with names, namespaces and queues of their own."""
    templates = jobs()
    for i in range(count):
        job = copy.deepcopy(templates[i % len(templates)])
        team = TEAMS[i % len(TEAMS)]
        metadata = job.setdefault("metadata", {})
        if "generateName" not in metadata:
            metadata["name"] = f"{WORDS[i % len(WORDS)]}-{team}-{i:03}"
        metadata["namespace"] = team
        if i % 3:
            metadata["labels"] = {**(metadata.get("labels") or {}), "kueue.x-k8s.io/queue-name": f"{team}-queue"}
        yield f"{team}/{metadata.get('name') or f'run-{i:03}'}.yaml", yaml.dump(job)


def write(folder: Path, count: int) -> Path:
    """The estate as files below `folder`."""
    for name, text in estate(count):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
