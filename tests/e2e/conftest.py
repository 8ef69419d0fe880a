"""The cluster that `make cluster` left running, a namespace per test, and what failed tests print."""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.context import Context
from tests.cluster.versions import KUEUE_MODULE, OPERATOR_MODULE, TRAINERS
from tests.e2e import evidence
from tests.e2e.kube import Kubectl
from trainjob.kube.yaml import dump

PROGRAMS = Path(__file__).parent / "programs"
ROWS: list[evidence.Row] = []
_SEEN: dict[str, str] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-evidence", action="store_true", help="write docs/evidence.md at the end")


def kubectl_of(context: Context) -> str:
    """The kubectl that the harness brought, else the machine's own."""
    brought = sorted(context.home.glob("bin/kubectl@*/kubectl"))
    return str(brought[-1]) if brought else shutil.which("kubectl") or "kubectl"


def kubernetes(context: Context) -> str:
    """The version of the nodes, as the cluster itself says it."""
    node = Kubectl(kubectl_of(context), context.kubeconfig).list("nodes")[0]
    return str(node["status"]["nodeInfo"]["kubeletVersion"])


@pytest.fixture(scope="session")
def cluster() -> Kubectl:
    """kubectl for the test cluster. Fails, never skips, when there is none."""
    context = Context(os.environ.get("CLUSTER", "trainjob"))
    if not context.kubeconfig.exists():
        pytest.fail(f"there is no cluster {context.name!r}; `make cluster` brings it up", pytrace=False)
    kubectl = Kubectl(kubectl_of(context), context.kubeconfig)
    answer = kubectl.run("get", "nodes", check=False)
    if " Ready" not in answer:
        pytest.fail(f"the cluster {context.name!r} does not answer; run `make cluster`\n{answer}", pytrace=False)
    return kubectl


@pytest.fixture
def kubectl(cluster: Kubectl, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """The cluster with a namespace of the test's own, deleted afterwards."""
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:30].strip("-")
    name = f"e2e-{stem}-{uuid.uuid4().hex[:5]}"
    # Open for several nodes; the tests of the gate close it.
    labels = {"trainjob.dev/multi-node": "allowed"}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    cluster.run("create", "-f", "-", stdin=dump(body))
    own = replace(cluster, namespace=name)
    yield own
    if request.node.stash.get(_FAILED, False):
        print(own.picture())
        print(own.managers())
    own.run("delete", "trainjobs,pytorchjobs,jobsets", "--all", "--wait=false", check=False)
    cluster.run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def programs(kubectl: Kubectl) -> str:
    """A ConfigMap with the training programs, in the test's namespace; its name."""
    data = {p.name: p.read_text(encoding="utf-8") for p in sorted(PROGRAMS.glob("*.py"))}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "programs"}, "data": data}
    kubectl.run("apply", "-f", "-", stdin=dump(body))
    return "programs"


@pytest.fixture
def seen(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """`seen("12 s")`: the figure or words that stand beside the test in docs/evidence.md."""

    def record(text: str) -> None:
        _SEEN[request.node.nodeid] = text

    return record


_FAILED = pytest.StashKey[bool]()
_START = pytest.StashKey[float]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_START] = time.monotonic()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
        # The shapes of the conformance suite have their own page, migration/DIFFERENCES.md.
        shape = "differential/" in item.nodeid and "[" in item.nodeid
        if report.passed and not shape:
            proves = " ".join((item.function.__doc__ or item.name).split())  # type: ignore[attr-defined]
            name = item.nodeid.removeprefix("tests/e2e/")
            seconds = time.monotonic() - item.stash[_START]
            ROWS.append(evidence.Row(name, proves, _SEEN.get(item.nodeid, ""), seconds))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not ROWS:
        return
    context = Context(os.environ.get("CLUSTER", "trainjob"))
    rows = evidence.store(ROWS, context.state["trainer"])
    if session.config.getoption("--write-evidence"):
        release = TRAINERS[context.state["trainer"]]
        versions = {
            "Kubernetes": kubernetes(context),
            "Trainer": release.module.version,
            "JobSet": release.jobset.version,
            "Kueue": KUEUE_MODULE.version,
            "Training Operator": OPERATOR_MODULE.version,
        }
        evidence.write_page(rows, versions)
