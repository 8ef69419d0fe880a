"""The admission lock: in every overlay of ours, whole, and in step with the runtimes it reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_overlays import OVERLAYS
from tools import check_overlays as policy
from trainjob.catalog import TOPOLOGY, V1_COMPAT, V1_COMPAT_MULTINODE, catalog
from trainjob.kustomize import Engine, build
from trainjob.targets import GROUP
from trainjob.validate.view import STEP_LABEL

pytestmark = pytest.mark.kubectl

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "overlays/components/multi-node-gate"
PAGE = "docs/howto/gate.md"
BINDING = "ValidatingAdmissionPolicyBinding"
# Which of the policies count nodes, and with what they begin.
COUNTING = ("cluster-runtimes", "team-runtimes", "written-runtimes")
JUDGING_JOBS = ("cluster-runtimes", "numbers", "team-runtimes")

Obj = dict[str, Any]


def files() -> dict[str, tuple[Obj, Obj]]:
    """(policy, binding) by file."""
    out = {}
    for file in sorted(FOLDER.glob("*.yaml")):
        if file.name != policy.FILE:
            one, other = policy.objects(file.read_bytes())
            out[file.stem] = (one, other)
    return out


def named(items: list[Obj]) -> dict[str, str]:
    return {item["name"]: item["expression"] for item in items}


def gate_of(rendered: bytes) -> dict[str, Obj]:
    return {
        f"{doc['kind']} {doc['metadata']['name']}": doc
        for doc in policy.objects(rendered)
        if doc["kind"] in policy.GATE_KINDS
    }


@pytest.fixture
def shop(newest_engine: Engine, tmp_path: Path) -> policy.Workshop:
    return policy.Workshop(policy.Repository(ROOT), tmp_path, newest_engine)


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_overlay_holds_the_gate_as_its_files_say(newest_engine: Engine, name: str) -> None:
    wanted = {f"{o['kind']} {o['metadata']['name']}": o for pair in files().values() for o in pair}
    assert gate_of(build(ROOT / "overlays" / name, newest_engine)) == wanted
    assert len(wanted) == 8


def test_each_policy_denies_through_its_binding() -> None:
    for name, (rules, binding) in files().items():
        assert rules["apiVersion"] == binding["apiVersion"] == "admissionregistration.k8s.io/v1"
        assert rules["metadata"]["name"] == binding["metadata"]["name"] == f"trainjob-gate-{name}"
        assert (rules["spec"]["failurePolicy"], binding["spec"]["validationActions"]) == ("Fail", ["Deny"])
        assert binding["spec"]["policyName"] == rules["metadata"]["name"]
        assert "matchResources" not in binding["spec"]  # every namespace
        (rule,) = rules["spec"]["matchConstraints"]["resourceRules"]
        assert (rule["apiGroups"], rule["operations"]) == ([GROUP], ["CREATE", "UPDATE"])
        assert rule["resources"] == (["trainjobs"] if name in JUDGING_JOBS else ["trainingruntimes"])
        if "paramKind" in rules["spec"]:
            # All runtimes, of which the match condition keeps the job's own. None there is no reason to refuse:
            # Trainer's webhook does.
            assert binding["spec"]["paramRef"] == {"selector": {}, "parameterNotFoundAction": "Allow"}
            assert (
                "object.spec.runtimeRef.name == params.metadata.name"
                in named(rules["spec"]["matchConditions"])["own-runtime"]
            )


def test_what_several_policies_say_is_one_text() -> None:
    """CEL has no include, so the same variables stand in several files."""
    all_ = files()
    texts = {name: named(rules["spec"]["variables"]) for name, (rules, _) in all_.items()}
    counted = ("label", "jobs", "policy", "ofRuntime", "mpi", "launcherTrains", "first", "pods", "besides", "nodes")
    for variable in counted:
        assert len({texts[name][variable] for name in COUNTING}) == 1, variable
    for variable in ("open", "most", "limit", "plan", "closed", "above"):
        assert len({text[variable] for text in texts.values()}) == 1, variable
    judged = {named(all_[name][0]["spec"]["matchConditions"])["asks-or-resumes"] for name in JUDGING_JOBS}
    assert len(judged) == 1
    assert texts["cluster-runtimes"]["label"] == f"'{STEP_LABEL}'"


def test_every_refusal_says_what_to_do() -> None:
    count = 0
    for rules, _ in files().values():
        texts = named(rules["spec"]["variables"])
        for validation in rules["spec"]["validations"]:
            count += 1
            said = validation["messageExpression"]
            for variable in re.findall(r"variables\.(closed|above|plan)", said):
                said += texts[variable] + texts["plan"]
            assert "asks for" in said
            assert "Plan first" in said
            assert PAGE in said
            assert validation["reason"] == "Forbidden"
    assert count == 9
    assert (ROOT / PAGE).is_file()


def test_labels_are_those_of_the_runtimes_and_the_page() -> None:
    """The gate knows our runtimes by a label and reads their numbers: neither can drift from runtimes/."""
    rules = files()["cluster-runtimes"][0]["spec"]
    assert f"labels[?'{TOPOLOGY}'].hasValue()" in named(rules["matchConditions"])["ours"]
    assert f"labels[?'{TOPOLOGY}']" in named(rules["variables"])["topology"]
    text = (FOLDER / "cluster-runtimes.yaml").read_text("utf-8")
    values = set(re.findall(r"variables\.topology [!=]= '([a-z-]+)'", text))
    assert values == {runtime.topology for runtime in catalog().values()} == {"single-node", "multi-node"}
    for name, runtime in catalog().items():
        several = runtime.file.parent.name == "multi-node"
        assert runtime.topology == ("multi-node" if several else "single-node"), name
        assert (runtime.nodes > 1) == several, name
    assert {V1_COMPAT, V1_COMPAT_MULTINODE} <= set(catalog())
    page = (ROOT / PAGE).read_text("utf-8")
    for label in set(re.findall(r"labels\[\?'(trainjob\.dev/[a-z-]+)'\]", text)):
        assert label in page, label


def test_the_wider_gate_differs_in_one_condition(shop: policy.Workshop) -> None:
    ours = gate_of(shop.render(shop.probe("multi-node-gate")))
    wider = gate_of(shop.render(shop.probe("multi-node-gate-all")))
    name = "ValidatingAdmissionPolicy trainjob-gate-cluster-runtimes"
    assert {key for key in ours if ours[key] != wider[key]} == {name}
    kept = wider[name]["spec"].pop("matchConditions")
    assert kept == [c for c in ours[name]["spec"].pop("matchConditions") if c["name"] != "ours"]
    assert wider[name] == ours[name]


# --- the overlay policy finds a gate with a hole ----------------------------------------------------------


def broken(shop: policy.Workshop, engine: Engine) -> list[str]:
    repo = policy.Repository(shop.root)
    (shop.root / "copy").mkdir()
    return list(policy.outcomes(repo, policy.Workshop(repo, shop.root / "copy", engine)))


def test_policy_reports_several_nodes_without_the_gate(shop: policy.Workshop, newest_engine: Engine) -> None:
    file = shop.root / "overlays/prod-multi-node/kustomization.yaml"
    file.write_text(file.read_text("utf-8").replace("  - ../components/multi-node-gate\n", ""), encoding="utf-8")
    assert any(
        "overlays/prod-multi-node: multi-node goes with multi-node-gate" in x for x in broken(shop, newest_engine)
    )


def test_policy_reports_a_part_of_the_gate_that_is_gone_or_foreign(
    shop: policy.Workshop, newest_engine: Engine
) -> None:
    file = shop.root / "overlays/components/multi-node-gate" / policy.FILE
    file.write_text(file.read_text("utf-8").replace("  - numbers.yaml\n", ""), encoding="utf-8")
    other = shop.root / "overlays/dev/other"
    other.mkdir()
    (other / "binding.yaml").write_text(
        str({**files()["numbers"][1], "metadata": {"name": "foreign"}}), encoding="utf-8"
    )  # fmt: skip
    shop.write("overlays/dev/other", {"resources": ["binding.yaml"]})
    dev = shop.root / "overlays/dev" / policy.FILE
    dev.write_text(dev.read_text("utf-8").replace("resources:\n", "resources:\n  - other\n"), encoding="utf-8")
    found = broken(shop, newest_engine)
    assert f"overlays/prod: {BINDING} trainjob-gate-numbers is missing" in found
    assert f"overlays/dev: {BINDING} foreign is not of multi-node-gate" in found
