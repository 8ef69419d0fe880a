"""How the launcher reads what Trainer says of the topology, without torch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from trainjob.launch.run import topology

# What torchrun's parser makes of Trainer's variables (PET_NNODES and its like).
TRAINER: dict[str, Any] = {
    "standalone": False, "rdzv_backend": "static", "rdzv_endpoint": "", "rdzv_conf": "", "nnodes": "3",
    "node_rank": 0, "master_addr": "tune-node-0-0.tune", "master_port": 29500,
}  # fmt: skip


def at(rank: int, environ: dict[str, str] | None = None, **args: Any) -> dict[str, Any]:
    return topology({**TRAINER, "node_rank": rank, **args}, environ or {}, f"tune-node-0-{rank}")


def test_several_nodes_meet_at_the_first() -> None:
    made = at(2)
    assert made["rdzv_backend"] == "c10d"
    assert made["rdzv_endpoint"] == "tune-node-0-0.tune:29500"
    assert made["rdzv_conf"] == "is_host=0"
    assert at(0)["rdzv_conf"] == "is_host=1"
    assert at(0)["rdzv_id"] == at(1)["rdzv_id"]


def test_the_order_of_addresses_is_the_order_of_pods() -> None:
    # torch gives ranks by sorted address (elastic/rendezvous/dynamic_rendezvous.py, _NodeDesc).
    addresses = [at(rank)["local_addr"] for rank in range(120)]
    assert sorted(addresses) == addresses
    assert addresses[0] == "tune-node-0-0.tune", "the others connect to rank 0 by this name"


def test_one_node_meets_itself() -> None:
    made = at(0, nnodes="1")
    assert made["rdzv_backend"] == "c10d"
    assert made["rdzv_endpoint"] == "localhost:0"
    assert made["local_addr"] == "localhost", "the host's name cannot be looked up where there is no network"


@pytest.mark.parametrize(
    "chosen", [{"standalone": True}, {"rdzv_backend": "c10d"}, {"rdzv_endpoint": "elsewhere:1234"}], ids=str
)
def test_what_the_user_chose_stays(chosen: dict[str, Any]) -> None:
    assert at(1, **chosen) == {}


def test_settings_of_the_rendezvous_stay() -> None:
    assert at(0, rdzv_conf="join_timeout=60")["rdzv_conf"] == "join_timeout=60,is_host=1"
    assert at(0, rdzv_conf="is_host=0")["rdzv_conf"] == "is_host=0"
    assert at(0, {"PET_RDZV_ID": "mine"})["rdzv_id"] == "mine"


def test_without_torch_it_says_where_to_run_it() -> None:
    script = "import sys; sys.modules['torch'] = None; from trainjob.launch.run import main; sys.exit(main(['t.py']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "training image" in done.stderr
