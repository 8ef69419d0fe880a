"""What the acceptance tests ask of the migrator, with one place that calls it.

`result(number)` migrates one input; `case(number)` joins a PyTorchJob of it with its TrainJob.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import pytest
import yaml

from tests.migrate.acceptance.effective import COMPLETION_INDEX, GLOBAL_INDEX, Role, roles
from tests.migrate.acceptance.inputs import (
    ROOT,
    SHIM,
    Source,
    V1Job,
    accelerators,
    env_map,
    source,
    v1_job,
    v1_jobs,
    walk,
)
from trainjob.migrate import migrate_text

TRAINER = "trainer.kubeflow.org/v1alpha1"
ISTIO = "sidecar.istio.io/inject"
MANAGER = "trainjob.dev/migrate"
RANKS = ("note", "warning", "error")


class OutputLoader(yaml.SafeLoader):
    """Reads an output as a strict API server would: no duplicate keys, `1e-4` is a number."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        assert len(names) == len(set(names)), f"duplicate key in the output: {names}"
        return super().construct_mapping(node, deep)


OutputLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def migrate(text: str | bytes, file: str = "input.yaml") -> Any:
    """The only call into the product."""
    return migrate_text(text, file=file)


@dataclass(frozen=True)
class Result:
    """One migrated text."""

    source: Source
    text_in: str
    migration: Any

    @property
    def text(self) -> str:
        return self.migration.text

    @cached_property
    def docs(self) -> list[Any]:
        return [d for d in yaml.load_all(self.text, Loader=OutputLoader) if d is not None]

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        """Top-level objects in order, with every `kind: List` opened."""
        out: list[dict[str, Any]] = []
        for doc in self.docs:
            out += doc["items"] if doc.get("kind") == "List" else [doc]
        return out

    @cached_property
    def jobs(self) -> list[dict[str, Any]]:
        """Every TrainJob, also inside wrappers and strings."""
        return [n for n in walk(self.docs) if n.get("kind") == "TrainJob" and n.get("apiVersion") == TRAINER]

    @property
    def kinds(self) -> list[str]:
        return [o["kind"] for o in self.objects]

    def find(self, kind: str) -> dict[str, Any]:
        (found,) = [o for o in self.objects if o["kind"] == kind]
        return found

    @cached_property
    def own_runtimes(self) -> list[dict[str, Any]]:
        return [o for o in self.objects if o["kind"] == "TrainingRuntime"]

    def runtime_of(self, job: dict[str, Any]) -> dict[str, Any]:
        """The runtime a TrainJob refers to: of this output or of the catalogue."""
        ref = job["spec"]["runtimeRef"]
        kind = ref.get("kind", "ClusterTrainingRuntime")
        pool = self.own_runtimes if kind == "TrainingRuntime" else catalogue()
        found = [r for r in pool if r["metadata"]["name"] == ref["name"]]
        assert len(found) == 1, f"{kind} {ref['name']} does not exist exactly once"
        return found[0]

    def says(self, *patterns: str, at_least: str = "note", within: str = "", at: str = "") -> Any:
        """The first finding whose message and fix match every pattern (no case, any line).

        `within` has to be in its subject or text, `at` in its field path.
        """
        for finding in self.migration.findings:
            text = f"{finding.message}\n{finding.fix}"
            if within and within not in f"{finding.subject}\n{text}":
                continue
            if at not in (finding.where.path if finding.where else ""):
                continue
            severe = RANKS.index(str(finding.severity)) >= RANKS.index(at_least)
            if severe and all(re.search(p, text, re.I | re.S) for p in patterns):
                return finding
        listing = "\n".join(f"  {f.code} {f.severity}: {f.message} | {f.fix}" for f in self.migration.findings)
        pytest.fail(f"no finding (>= {at_least}) says {patterns} {within}; there are\n{listing}")

    def mentions(self, word: str) -> bool:
        """Whether any finding names `word` in message, fix or field path."""
        texts = (f"{f.message}\n{f.fix}\n{f.where.path if f.where else ''}" for f in self.migration.findings)
        return any(word.lower() in t.lower() for t in texts)

    def refused(self, *patterns: str, exits: tuple[int, ...] = (1,)) -> Any:
        """Nothing was converted, nothing comes out, and an error gives the reason and the place."""
        assert self.jobs == []
        assert self.migration.converted == 0
        assert self.text.strip() == ""
        assert self.migration.exit_code in exits
        finding = self.says(*patterns, at_least="error")
        assert finding.where is not None
        assert finding.where.file == self.source.file
        assert finding.where.line > 0
        return finding

    def passes_through(self) -> None:
        """Every other document is in the output byte for byte and in order."""
        at = 0
        for chunk in self.source.others:
            found = self.text.find(chunk, at)
            assert found >= 0, f"changed or moved:\n{chunk}"
            at = found + len(chunk)


@cache
def result(number: int) -> Result:
    origin = source(number)
    return Result(origin, origin.text, migrate(origin.text, origin.file))


def edited(number: int, *changes: tuple[str, str]) -> Result:
    """The result for an input in which pieces of text were replaced."""
    origin = source(number)
    text = origin.text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return Result(origin, text, migrate(text, origin.file))


@cache
def catalogue() -> list[dict[str, Any]]:
    """Every ClusterTrainingRuntime below runtimes/."""
    found = []
    for path in sorted((ROOT / "runtimes").rglob("*.yaml")):
        for doc in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if isinstance(doc, dict) and doc.get("kind") == "ClusterTrainingRuntime":
                found.append(doc)
    return found


@dataclass(frozen=True)
class Case:
    """A PyTorchJob and the TrainJob that came out of it."""

    result: Result
    v1: V1Job
    job: dict[str, Any]

    @property
    def name(self) -> str:
        return self.job["metadata"]["name"]

    @property
    def spec(self) -> dict[str, Any]:
        return self.job["spec"]

    @property
    def metadata(self) -> dict[str, Any]:
        return self.job["metadata"]

    @property
    def trainer(self) -> dict[str, Any]:
        return self.job["spec"]["trainer"]

    @property
    def env(self) -> dict[str, dict[str, Any]]:
        return env_map(self.trainer.get("env"))

    @cached_property
    def runtime(self) -> dict[str, Any]:
        return self.result.runtime_of(self.job)

    @cached_property
    def roles(self) -> dict[str, Role]:
        return roles(self.job, self.runtime)

    @property
    def node(self) -> Role:
        return self.roles["node"]

    @property
    def worker(self) -> Role:
        return self.roles["worker"]

    @property
    def form(self) -> str:
        if self.runtime["kind"] == "TrainingRuntime":
            return "two-role" if len(self.roles) > 1 else "runtime"
        return "patches" if self.spec.get("runtimePatches") else "plain"

    @property
    def accelerators(self) -> dict[str, Fraction]:
        """What all pods ask for together of each extended resource."""
        total: dict[str, Fraction] = defaultdict(Fraction)
        for role in self.roles.values():
            for key, value in accelerators(role.pod).items():
                total[key] += role.pods * value
        return dict(total)

    def role_for(self, v1_role: str) -> Role:
        """Where the pods of a v1 role went."""
        return self.worker if self.form == "two-role" and v1_role == "Worker" else self.node

    def shim(self, world: str) -> None:
        """The five variables in trainer.env, and in both jobs of a two-role runtime."""
        envs = [self.env]
        rank = COMPLETION_INDEX
        if self.form == "two-role":
            envs = [env_map(role.main.get("env")) for role in self.roles.values()]
            rank = GLOBAL_INDEX
        for env in envs:
            assert env["MASTER_ADDR"] == {"name": "MASTER_ADDR", "value": f"{self.name}-node-0-0.{self.name}"}
            assert env["MASTER_PORT"] == {"name": "MASTER_PORT", "value": "29500"}
            assert env["WORLD_SIZE"] == {"name": "WORLD_SIZE", "value": world}
            assert env["RANK"] == {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": rank}}}
            assert env["PYTHONUNBUFFERED"] == {"name": "PYTHONUNBUFFERED", "value": "1"}

    def shim_or_none(self, world: str) -> None:
        """For bare torchrun: either no shim at all or a right one."""
        if set(self.env) & set(SHIM[:4]):
            self.shim(world)

    def compat(self) -> None:
        """A job without a fixed name: no literals, the runtime derives v1's variables from PET_*."""
        assert not set(self.env) & set(SHIM[:4])
        env = env_map(self.node.main.get("env"))
        order = list(env)
        for v1_name, pet in (
            ("MASTER_ADDR", "PET_MASTER_ADDR"),
            ("MASTER_PORT", "PET_MASTER_PORT"),
            ("WORLD_SIZE", "PET_NNODES"),
        ):
            assert env[v1_name]["value"] == f"$({pet})"
            assert order.index(pet) < order.index(v1_name), "$(VAR) expands only backwards"
        assert env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"] == COMPLETION_INDEX
        assert env["PYTHONUNBUFFERED"]["value"] == "1"

    def two_roles(self, workers: int) -> None:
        """The generated runtime with jobs `node` (Master) and `worker`, in that order."""
        assert self.form == "two-role"
        assert list(self.roles) == ["node", "worker"]
        assert self.node.pods == 1
        assert self.worker.pods == workers
        assert self.trainer["numNodes"] == 1
        assert "torch" not in self.runtime["spec"]["mlPolicy"]
        assert self.runtime["spec"]["mlPolicy"]["numNodes"] == 1
        for role in self.roles.values():
            env = env_map(role.main.get("env"))
            assert env["PET_NNODES"]["value"] == str(1 + workers)
            assert env["PET_NODE_RANK"]["valueFrom"]["fieldRef"]["fieldPath"] == GLOBAL_INDEX
            assert env["PET_MASTER_ADDR"]["value"] == f"{self.name}-node-0-0.{self.name}"
            assert env["PET_MASTER_PORT"]["value"] == "29500"
            assert env["PET_NPROC_PER_NODE"]["value"]


def case(number: int, name: str = "") -> Case:
    """The only (or the named) job of an input that has to convert."""
    got = result(number)
    if name:
        (job,) = [j for j in got.jobs if j["metadata"].get("name") == name]
    else:
        (job,) = got.jobs
    return Case(got, v1_job(number, name), job)


def cases(number: int) -> list[Case]:
    """All converted jobs of an input; nameless ones are matched by order."""
    got = result(number)
    named = {j.name: j for j in v1_jobs(number)}
    out = []
    for i, job in enumerate(got.jobs):
        origin = named.get((job.get("metadata") or {}).get("name", ""))
        out.append(Case(got, origin or v1_jobs(number)[i], job))
    return out


def severities(got: Result) -> list[str]:
    return [str(f.severity) for f in got.migration.findings]
