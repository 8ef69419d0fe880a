"""Every field of the v1 API is answered for by exactly one rule, and every rule is complete."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.contract.samples import SCHEMA, job_with
from tests.migrate.rules.support import v1
from tests.property.losses import lost
from trainjob.findings import Severity
from trainjob.kube import yaml
from trainjob.migrate import codes, migrate_text
from trainjob.migrate import job as engine
from trainjob.migrate import rules as package
from trainjob.migrate.fields import ClaimTree, Segments, leaves, segments
from trainjob.migrate.rule import Outcome, Rule
from trainjob.migrate.rules import RULES
from trainjob.targets import target
from trainjob.validate import BY_CODE

ROOT = Path(__file__).parents[2]
LEAVES = list(leaves(SCHEMA))
MODULES = {path.stem: path for path in sorted(Path(str(package.__file__)).parent.glob("tj*.py"))}
BY_MODULE: dict[str, Rule] = {name: importlib.import_module(f"trainjob.migrate.rules.{name}").RULE for name in MODULES}
every_rule = pytest.mark.parametrize("name", MODULES)


# --- claims and the CRD ----------------------------------------------------------------------------


def test_all_leaves_of_the_crd_are_seen() -> None:
    """The number is asserted, so that a schema that could not be read does not count as covered."""
    assert len(LEAVES) == len(set(LEAVES)) == 875


def test_every_leaf_is_claimed() -> None:
    """100 % of the v1 API; a field without a claim would be an error at run time."""
    tree = ClaimTree(RULES)
    assert [".".join(leaf) for leaf in LEAVES if tree.find(leaf) is None] == []


def test_claims_are_disjoint() -> None:
    """Building the tree raises otherwise; no claim stands above another."""
    fields = [segments(claim.field) for rule in RULES for claim in rule.claims]
    assert len(fields) == len(set(fields)) == 110
    for one in fields:
        assert not [two for two in fields if two != one and two[: len(one)] == one]


def test_no_claim_is_dead() -> None:
    """Each names a field of the CRD or of its metadata."""
    prefixes = {leaf[:i] for leaf in LEAVES for i in range(1, len(leaf) + 1)}
    dead = [
        (rule.code, claim.field) for rule in RULES for claim in rule.claims if segments(claim.field) not in prefixes
    ]
    assert dead == []


def test_claims_say_where_the_field_goes() -> None:
    """What is carried or translated has a target; what is refused has none."""
    for rule in RULES:
        for claim in rule.claims:
            assert bool(claim.becomes) or claim.outcome in (Outcome.DROPPED, Outcome.REFUSED), claim
            assert claim.outcome is not Outcome.REFUSED or not claim.becomes, claim


# A leaf beside which another one wins, or that is the same as what stands there anyway.
SILENT = {"metadata.generateName": "beside a name the API server ignores it"}
REFUSED = re.compile(r".*\.(ephemeralContainers\.|valueFrom\.fileKeyRef\.)")


@pytest.mark.parametrize("leaf", LEAVES, ids=".".join)
def test_a_job_with_this_field_loses_nothing(leaf: Segments) -> None:
    """Set alone, each leaf is in the output, or a finding names its place, or the job is refused for it."""
    field = ".".join(leaf)
    job = job_with(leaf)
    result = migrate_text(yaml.dump(job))
    errors = [f for f in result.findings if f.severity is Severity.ERROR]
    if REFUSED.match(field) and not field.startswith("spec.pytorchReplicaSpecs.*.template.spec.initContainers"):
        assert [f.code for f in errors] == ["TJ309" if "ephemeral" in field else "TJ204"]
        return
    assert [f.text() for f in errors] == []
    assert result.converted == 1
    assert lost(job, result) == [] or field in SILENT


# Pod fields that came into Kubernetes after the release that a Trainer version was built on.
NEWER = {
    "2.0": r"stopSignal|restartPolicyRules|podCertificate|schedulingGroup",
    "2.1": r"schedulingGroup|podCertificate\.userAnnotations",
    "2.2": r"schedulingGroup",
}


@pytest.mark.parametrize("name", NEWER)
def test_older_targets_lose_nothing_either(name: str) -> None:
    """Each leaf again: carried, told, or refused because that Trainer version does not have the field."""
    lossy, refused = [], []
    for leaf in LEAVES:
        field = ".".join(leaf)
        if REFUSED.match(field) or field in SILENT:
            continue
        job = job_with(leaf)
        result = migrate_text(yaml.dump(job), target=target(name))
        errors = [f.message for f in result.findings if f.severity is Severity.ERROR]
        if errors:
            refused.append((field, errors))
        elif lost(job, result):
            lossy.append(field)
    assert lossy == []
    assert [item for item in refused if not re.search(NEWER[name], item[0])] == []
    assert all("(TJ502): unknown field" in errors[0] for _, errors in refused)
    assert refused


def test_a_field_without_a_rule_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one rule away: its field is found, the job is refused, and nothing is written."""
    job = yaml.dump(v1({"workingDir": "/w"}))
    assert migrate_text(job).converted == 1
    monkeypatch.setattr(engine, "RULES", tuple(rule for rule in RULES if rule.code != "TJ207"))
    result = migrate_text(job)
    (finding,) = [f for f in result.findings if f.severity is Severity.ERROR]
    assert finding.code == codes.UNCLAIMED == "TJ900"
    assert finding.where is not None
    assert finding.where.path.endswith("containers[0].workingDir")
    assert (result.text, result.exit_code) == ("", 1)


@pytest.mark.parametrize("code", [rule.code for rule in RULES if rule.claims])
def test_every_rule_is_needed(code: str) -> None:
    """Without any one rule that has claims, some leaf has none."""
    tree = ClaimTree(rule for rule in RULES if rule.code != code)
    assert any(tree.find(leaf) is None for leaf in LEAVES)


# --- the rule files ------------------------------------------------------------------------------


def test_every_rule_file_is_in_the_tuple_once() -> None:
    """A file that is not listed does not exist for the migrator."""
    assert len(MODULES) == 39
    assert sorted(r.code for r in RULES) == sorted(r.code for r in BY_MODULE.values())
    assert all(any(rule is each for each in RULES) for rule in BY_MODULE.values())


def test_codes_are_unique() -> None:
    """Among rules, the engine's own and the checks of validate."""
    all_codes = [r.code for r in RULES] + list(codes.CODES) + list(BY_CODE)
    assert len(all_codes) == len(set(all_codes))
    assert len({r.name for r in RULES}) == len(RULES)


@every_rule
def test_code_and_name_fit_the_file(name: str) -> None:
    """tj101_replicas.py holds TJ101, in the family of its first digit."""
    rule = BY_MODULE[name]
    assert re.fullmatch(r"TJ[1-4]\d\d", rule.code)
    assert name.startswith(rule.code.lower() + "_")
    assert re.fullmatch(r"[a-z][a-z0-9-]+", rule.name)


@every_rule
def test_the_rule_explains_itself(name: str) -> None:
    """A title, what it does and why it matters: the documentation is made from it."""
    doc = importlib.import_module(f"trainjob.migrate.rules.{name}").__doc__ or ""
    title, empty, *rest = doc.splitlines()
    assert title.endswith(".")
    assert 10 < len(title) <= 110
    assert empty == ""
    text = " ".join(" ".join(rest).split())
    assert re.search(r"What it does: [\w`]", text)
    assert re.search(r"Why it matters: [\w`]", text)


@every_rule
def test_the_rule_says_its_own_code(name: str) -> None:
    """No code of another rule in its source."""
    rule = BY_MODULE[name]
    assert set(re.findall(r'"(TJ\d{3})"', MODULES[name].read_text(encoding="utf-8"))) == {rule.code}


@every_rule
def test_the_rule_has_a_unit_test_with_a_noop(name: str) -> None:
    """A file of the same name that tests the rule and its silence."""
    text = (ROOT / "tests" / "migrate" / "rules" / f"test_{name}.py").read_text(encoding="utf-8")
    assert f"RULE = {name}.RULE" in text
    assert re.search(r"def test_noop\w*\(", text)
    assert BY_MODULE[name].code in text.splitlines()[0]


def test_rules_are_seen_in_real_jobs() -> None:
    """Most of them speak in a report of migration/cases; the others change their output or refuse."""
    reports = "".join(p.read_text(encoding="utf-8") for p in ROOT.glob("migration/cases/*/report.txt"))
    silent = {r.code for r in RULES} - set(re.findall(r"\[(TJ\d{3})\]", reports))
    # These carry an image, an account and a suspend without a word.
    assert silent == {"TJ201", "TJ306", "TJ406"}


@pytest.mark.parametrize("code", codes.CODES)
def test_codes_of_the_engine_are_described(code: str) -> None:
    """A short name and a sentence, and a test of the engine that mentions it (TJ912, TJ926 are the command's)."""
    name, text = codes.CODES[code]
    assert re.fullmatch(r"[a-z][a-z0-9-]+", name)
    assert text.endswith(".")
    files = [Path(__file__), *(ROOT / "tests" / "migrate").rglob("test_*.py")]
    tests = (p.read_text(encoding="utf-8") for p in files)
    assert code in (codes.CANNOT_READ, codes.IN_PLACE) or any(f'"{code}"' in text for text in tests)
