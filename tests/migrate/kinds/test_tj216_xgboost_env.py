"""TJ216: an XGBoostJob's variables, also LightGBM's."""

from __future__ import annotations

import pytest

from tests.migrate.kinds.support import chain, jax, refused, values, xgboost
from trainjob.migrate.kinds import tj216_xgboost_env

RULE = tj216_xgboost_env.RULE
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
GLOBAL = "metadata.annotations['jobset.sigs.k8s.io/job-global-index']"


def test_master_and_workers() -> None:
    """The Master is rank 0; Worker i is rank i + 1 and i-th of WORKER_ADDRS."""
    out = chain(xgboost())
    assert values(out) == {
        "MASTER_ADDR": "demo-node-0-0.demo",
        "MASTER_PORT": "29500",
        "WORLD_SIZE": "3",
        "RANK": INDEX,
        "PYTHONUNBUFFERED": "1",
        "WORKER_PORT": "29500",
        "WORKER_ADDRS": "demo-node-0-1.demo,demo-node-0-2.demo",
    }
    assert out.trainer["numNodes"] == 3
    assert out.runtime is not None
    assert out.runtime["spec"]["mlPolicy"] == {"numNodes": 1, "xgboost": {}}
    out.says("TJ216", "note", "Trainer sets DMLC_")
    out.says("TJ409", "note", "success: v1 was done when the Master was")


def test_a_master_alone_has_no_workers_to_name() -> None:
    """As in v1, which set WORKER_* only with more than one pod."""
    out = chain(xgboost(workers=0))
    assert set(values(out)) == {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PYTHONUNBUFFERED"}
    assert values(out)["WORLD_SIZE"] == "1"


def test_a_users_worker_variable_holds_where_the_operator_set_none() -> None:
    """With Workers the operator's value won."""
    env = {"env": [{"name": "WORKER_PORT", "value": "7"}]}
    assert values(chain(xgboost(env, workers=0)))["WORKER_PORT"] == "7"
    assert values(chain(xgboost(env)))["WORKER_PORT"] == "29500"


def test_unlike_programs_switch_on_the_rank_that_this_kind_has() -> None:
    """XGBoost has no PET_NODE_RANK."""
    out = chain(xgboost(worker={"command": ["python", "worker.py"]}))
    assert 'if [ "$RANK" = 0 ]; then' in out.trainer["command"][-1]
    assert out.runtime is not None
    assert len(out.runtime["spec"]["template"]["spec"]["replicatedJobs"]) == 1


def test_unlike_pods_are_two_jobs_without_a_policy() -> None:
    """Trainer's xgboost policy knows one kind of pods; v1's variables need none."""
    out = chain(xgboost({"resources": {"limits": {"cpu": "8"}}}, worker={"resources": {"limits": {"cpu": "2"}}}))
    assert out.runtime is not None
    assert out.runtime["spec"]["mlPolicy"] == {"numNodes": 1}
    assert out.trainer == {"numNodes": 1}
    for name in ("node", "worker"):
        env = {e["name"]: e for e in out.container(name)["env"]}
        assert env["MASTER_ADDR"]["value"] == "demo-node-0-0.demo"
        assert env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"] == GLOBAL
        assert env["WORKER_ADDRS"]["value"] == "demo-worker-0-0.demo,demo-worker-1-0.demo"
        assert not any(key.startswith("PET_") for key in env)
    assert out.runtime["spec"]["template"]["spec"]["successPolicy"]["targetReplicatedJobs"] == ["node"]


@pytest.mark.parametrize("name", ["DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"])
def test_reserved_names_are_refused(name: str) -> None:
    """The webhook of the xgboost policy would refuse the TrainJob; v1 took the value."""
    found = refused(
        xgboost({"env": [{"name": name, "value": "1"}]}), "TJ216", f"the job sets {name}; the xgboost policy"
    )
    assert found.where is not None
    assert found.where.path.endswith("containers[0].env")


def test_a_master_is_needed() -> None:
    """v1's webhook says so too."""
    data = xgboost()
    del data["spec"]["xgbReplicaSpecs"]["Master"]
    refused(data, "TJ911", "the role Master is missing")


def test_a_job_without_a_fixed_name() -> None:
    """Every address is put together from the pod's label."""
    out = chain(xgboost(metadata={"generateName": "sweep-"}))
    one = "$(V2_TRAINJOB_NAME)-node-0-{}.$(V2_TRAINJOB_NAME)"
    assert values(out)["WORKER_ADDRS"] == f"{one.format(1)},{one.format(2)}"
    assert next(iter(values(out))) == "V2_TRAINJOB_NAME"


def test_noop_for_a_jaxjob() -> None:
    """It has no Master."""
    assert "MASTER_ADDR" not in values(chain(jax()))
