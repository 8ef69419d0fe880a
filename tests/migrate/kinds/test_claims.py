"""Every field of the other kinds' CRDs is answered for by exactly one rule of that kind, and nothing is lost."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.contract import samples
from tests.migrate.kinds.support import Obj, jax, mpi, xgboost
from tests.property import losses
from trainjob.findings import Severity
from trainjob.kube import schema, yaml
from trainjob.kube.objectmeta import with_object_meta
from trainjob.migrate import codes, migrate_text
from trainjob.migrate.fields import ClaimTree, Segments, leaves, segments
from trainjob.migrate.kinds.registry import CONVERTED, KIND_RULES, rules_of
from trainjob.migrate.rules import RULES
from trainjob.v1.kinds import JAX, MPI, PYTORCH, XGBOOST, Kind

ROOT = Path(__file__).parents[3]
KINDS = (JAX, XGBOOST, MPI)
# Leaves of each CRD, so that a schema that could not be read does not count as covered.
COUNTS = {"JAXJob": 821, "XGBoostJob": 821, "MPIJob": 824}
# The role that the leaves are set in, and a job to set them in.
JOBS = {"JAXJob": ("Worker", jax), "XGBoostJob": ("Master", lambda: xgboost(workers=0)), "MPIJob": ("Worker", mpi)}
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)


@cache
def fields(kind: Kind) -> tuple[Mapping[str, Any], list[Segments]]:
    """The schema of a kind, and its leaves."""
    facts = with_object_meta(schema.raw(kind.name))
    return facts, list(leaves(facts))


@every_kind
def test_every_leaf_is_claimed_once(kind: Kind) -> None:
    """100 % of the CRD; the tree raises on two claims of one field."""
    _, found = fields(kind)
    tree = ClaimTree(rules_of(kind))
    assert len(found) == len(set(found)) == COUNTS[kind.name]
    assert [".".join(leaf) for leaf in found if tree.find(leaf) is None] == []


@every_kind
def test_no_claim_is_dead(kind: Kind) -> None:
    """Each names a field of this CRD, none of another kind's."""
    _, found = fields(kind)
    prefixes = {leaf[:i] for leaf in found for i in range(1, len(leaf) + 1)}
    dead = [(r.code, c.field) for r in rules_of(kind) for c in r.claims if segments(c.field) not in prefixes]
    assert dead == []


@every_kind
def test_every_rule_with_claims_is_needed(kind: Kind) -> None:
    """Without any one of them some leaf has none."""
    _, found = fields(kind)
    for rule in rules_of(kind):
        if rule.claims:
            tree = ClaimTree(r for r in rules_of(kind) if r.code != rule.code)
            assert any(tree.find(leaf) is None for leaf in found), rule.code


def with_leaf(kind: Kind, leaf: Segments) -> Obj:
    """A job of the kind with this leaf set, and with what it needs beside it."""
    role, make = JOBS[kind.name]
    node, _ = fields(kind)
    job: Any = make()
    holder: Any = job
    for i, part in enumerate(leaf):
        node = samples._child(node, part)
        key: Any = 0 if part == "[]" else part
        if part == "*":
            key = role if leaf[:i] == kind.path else "key-a"
        if isinstance(holder, list) and not holder:
            holder.append({})
        if i == len(leaf) - 1:
            holder[key] = samples._value(node, part if part not in ("*", "[]") else leaf[i - 1])
        elif not isinstance(holder, list) and key not in holder:
            holder[key] = [] if node.get("type") == "array" else {}
        holder = holder[key]
        if isinstance(holder, dict):
            for name in node.get("required", ()):
                holder.setdefault(name, samples._value(node["properties"][name], name))
    pod = job["spec"][kind.specs][role]["template"]["spec"]
    samples._complete(pod)
    return job  # type: ignore[no-any-return]


def chosen(kind: Kind) -> Iterator[Segments]:
    """Every leaf that is not deep inside a pod fragment which all rules copy whole: those are tried for PyTorchJob."""
    seen: set[Segments] = set()
    for leaf in fields(kind)[1]:
        depth = 10 if "containers" in leaf else 8
        if leaf[:depth] not in seen:
            seen.add(leaf[:depth])
            yield leaf


# Refused, or silent, for the reasons that the PyTorchJob's contract test gives; and what is this kind's own.
REFUSED = re.compile(r".*\.(ephemeralContainers\.|valueFrom\.fileKeyRef\.)")
OWN = {
    # More than one Master is refused, as by v1.
    "XGBoostJob": re.compile(r"spec\.xgbReplicaSpecs\.\*\.replicas"),
    "MPIJob": re.compile(
        # Written under other names; test_tj112 looks at them.
        r"spec\.mainContainer|spec\.slotsPerWorker|spec\.mpiReplicaSpecs\.\*\.(replicas|restartPolicy)"
        # A Worker's own command does more than wait; see TJ217.
        r"|.*containers\.\[\]\.(command|args)\.\[\]"
        # sshd as another user, or with fewer rights; see TJ217.
        r"|.*[sS]ecurityContext\.(runAsNonRoot|runAsUser|fsGroup)"
    ),
}
SAME = re.compile(r"kind|apiVersion|metadata\.generateName")


@every_kind
def test_a_job_with_one_leaf_loses_nothing(kind: Kind) -> None:
    """Set alone, a leaf is in the output, or a finding names its place, or the job is refused for it."""
    lossy, refused, tried = [], [], 0
    own = OWN.get(kind.name)
    for leaf in chosen(kind):
        field = ".".join(leaf)
        if SAME.fullmatch(field) or (own and own.fullmatch(field)):
            continue
        tried += 1
        job = with_leaf(kind, leaf)
        result = migrate_text(yaml.dump(job))
        errors = [f for f in result.findings if f.severity is Severity.ERROR]
        if errors:
            refused.append((field, [f.text() for f in errors]))
        elif found := lost(kind, job, result):
            lossy.append((field, found))
    assert lossy == []
    assert [r for r in refused if not REFUSED.match(r[0])] == []
    assert refused
    assert tried > 250


def lost(kind: Kind, job: Obj, result: Any) -> list[str]:
    """`losses.lost` with this kind's paths written as a PyTorchJob's."""
    text = yaml.dump(job).replace(kind.specs, PYTORCH.specs)
    (doc,) = yaml.load(text)
    found = []
    for f in result.findings:
        if f.where is not None:
            where = type(f.where)(
                f.where.file, f.where.line, f.where.column, f.where.path.replace(kind.specs, PYTORCH.specs)
            )
            f = type(f)(f.code, f.severity, f.message, where, f.fix, f.subject)
        found.append(f)
    told = type(result)(result.documents, tuple(found), result.converted, result.refused, result.jobs, result.records)
    return losses.lost(doc.data, told)


# --- the rule files ------------------------------------------------------------------------------


def test_codes_are_unique() -> None:
    """Among all rules and the engine's own codes."""
    every = [r.code for r in (*RULES, *KIND_RULES)] + list(codes.CODES)
    assert len(every) == len(set(every))
    assert len({r.name for r in (*RULES, *KIND_RULES)}) == len(RULES) + len(KIND_RULES)
    assert CONVERTED == ("PyTorchJob", "JAXJob", "XGBoostJob", "MPIJob")


@pytest.mark.parametrize("rule", KIND_RULES, ids=lambda r: r.code)
def test_the_rule_explains_itself(rule: Any) -> None:
    """Title, what it does and why; its own code only; a test file with a case in which it does nothing."""
    module = sys.modules[rule.apply.__module__]
    doc = module.__doc__ or ""
    title, empty, *rest = doc.splitlines()
    assert (title.endswith("."), empty) == (True, "")
    text = " ".join(" ".join(rest).split())
    assert re.search(r"What it does: [\w`]", text)
    assert re.search(r"Why it matters: [\w`]", text)
    source = Path(inspect.getsourcefile(module) or "")
    assert source.stem.startswith(rule.code.lower() + "_")
    assert set(re.findall(r'"(TJ\d{3})"', source.read_text(encoding="utf-8"))) == {rule.code}
    tests = (Path(__file__).parent / f"test_{source.stem}.py").read_text(encoding="utf-8")
    assert rule.code in tests.splitlines()[0]
    assert re.search(r"def test_noop\w*\(", tests)
    for claim in rule.claims:
        assert bool(claim.becomes) or claim.outcome.name in ("DROPPED", "REFUSED"), claim


@pytest.mark.parametrize("rule", KIND_RULES, ids=lambda r: r.code)
def test_the_rule_is_seen_in_a_case(rule: Any) -> None:
    """A report or an output of migration/cases shows it, for a reader to look at. TJ110 refuses other targets."""
    reports = "".join(p.read_text(encoding="utf-8") for p in ROOT.glob("migration/cases/*/report.txt"))
    assert rule.code == "TJ110" or f"[{rule.code}]" in reports
