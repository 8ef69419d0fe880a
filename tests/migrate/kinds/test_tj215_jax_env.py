"""TJ215: a JAXJob's variables under their v1 names."""

from __future__ import annotations

import pytest

from tests.migrate.kinds.support import chain, jax, refused, values
from tests.migrate.rules.support import v1
from trainjob.kube import yaml
from trainjob.migrate import migrate_text
from trainjob.migrate.kinds import tj215_jax_env

RULE = tj215_jax_env.RULE
V1_INDEX = "metadata.labels['training.kubeflow.org/replica-index']"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def test_v1_names_and_v1_numbers() -> None:
    """A host without a port, the port apart, one process a pod."""
    out = chain(jax(replicas=4))
    assert values(out) == {
        "COORDINATOR_ADDRESS": "demo-node-0-0.demo",
        "COORDINATOR_PORT": "29500",
        "NUM_PROCESSES": "4",
        "PROCESS_ID": INDEX,
        "PYTHONUNBUFFERED": "1",
    }
    assert out.trainer["numNodes"] == 4
    assert "numProcPerNode" not in out.trainer
    out.says("TJ215", "note", "NUM_PROCESSES 4, PROCESS_ID")


def test_the_users_own_values_are_behind_the_operators() -> None:
    """v1 appended its variables, so a user's COORDINATOR_PORT never held; other variables stay before."""
    out = chain(jax(container={"env": [{"name": "A", "value": "1"}, {"name": "COORDINATOR_PORT", "value": "7"}]}))
    assert list(values(out))[:2] == ["A", "COORDINATOR_ADDRESS"]
    assert values(out)["COORDINATOR_PORT"] == "29500"
    out.says("TJ204", "note", "COORDINATOR_PORT: dropped, because the v1 operator overwrote it")


def test_own_jax_variables_are_kept_and_told() -> None:
    """Trainer writes trainer.env over its own, so they hold as they did in v1; the host name is v2's."""
    env = [
        {"name": "JAX_COORDINATOR_ADDRESS", "value": "demo-worker-0:6666"},
        {"name": "JAX_PROCESS_ID", "valueFrom": {"fieldRef": {"fieldPath": V1_INDEX}}},
    ]
    out = chain(jax(container={"env": env}))
    assert values(out)["JAX_COORDINATOR_ADDRESS"] == "demo-node-0-0.demo:6666"
    assert values(out)["JAX_PROCESS_ID"] == INDEX
    out.says("TJ215", "note", "JAX_COORDINATOR_ADDRESS, JAX_PROCESS_ID of the job wins over Trainer's own")
    out.says("TJ204", "note", "which is the same number")


def test_a_job_without_a_fixed_name() -> None:
    """The address is put together from the pod's label, which stands before what uses it."""
    out = chain(jax(metadata={"generateName": "sweep-"}))
    assert list(values(out))[:2] == ["V2_TRAINJOB_NAME", "COORDINATOR_ADDRESS"]
    assert values(out)["V2_TRAINJOB_NAME"] == "metadata.labels['jobset.sigs.k8s.io/jobset-name']"
    assert values(out)["COORDINATOR_ADDRESS"] == "$(V2_TRAINJOB_NAME)-node-0-0.$(V2_TRAINJOB_NAME)"
    out.says("TJ105", "note", "from a label of the pod")


def test_sidecars_get_them_too() -> None:
    """v1 set them in every container."""
    pod = {"containers": [{"name": "jax", "image": "i:1"}, {"name": "push", "image": "p:1"}]}
    out = chain(jax(pod=pod))
    (sidecar,) = [c for c in out.pod()["containers"] if c["name"] == "push"]
    assert {e["name"] for e in sidecar["env"]} == set(values(out))


def test_scripts_of_a_configmap_are_read() -> None:
    """What a mounted script asks for, and a v1 host name in it."""
    script = "import os\nos.environ['COORDINATOR_ADDRESS']\nHOST = 'demo-worker-0'\n"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "src"}, "data": {"t.py": script}}
    pod = {"volumes": [{"name": "s", "configMap": {"name": "src"}}]}
    result = migrate_text(f"{yaml.dump(config)}---\n{yaml.dump(jax(pod=pod))}")
    found = [f for f in result.findings if f.code == "TJ215" and "ConfigMap" in f.message]
    assert [f.severity.value for f in found] == ["note", "warning"]
    assert "t.py in ConfigMap src reads COORDINATOR_ADDRESS; they are set" in found[0].message
    assert "v1 host name" in found[1].message


@pytest.mark.parametrize(
    ("roles", "pattern"),
    [
        ({}, "jaxReplicaSpecs is missing or empty"),
        ({"Master": {"template": {"spec": {}}}}, "v1 knows the roles Worker, not 'Master'"),
    ],
)
def test_what_v1_refuses(roles: dict[str, object], pattern: str) -> None:
    """A JAXJob has Workers only."""
    data = jax()
    data["spec"]["jaxReplicaSpecs"] = roles
    refused(data, "TJ911", pattern)


def test_noop_for_a_pytorchjob() -> None:
    """Its variables are TJ206's."""
    assert not {"COORDINATOR_ADDRESS", "PROCESS_ID"} & set(values(chain(v1())))


def test_the_default_restart_policy_is_never() -> None:
    """Of a JAXJob, not of a PyTorchJob."""
    out = chain(jax(restartPolicy=None))
    assert (out.pod()["restartPolicy"], out.batch()["backoffLimit"]) == ("Never", 0)
    kept = chain(jax())
    assert (kept.pod()["restartPolicy"], kept.batch()["backoffLimit"]) == ("OnFailure", 1000)
