"""The Kubeflow SDK, imported once. Its own deprecation warnings at import are not ours."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples.fake_api import FakeApi

INSTALL = 'the Kubeflow SDK is not installed: pip install "kubeflow>=0.5,<0.6"'


@pytest.fixture(scope="session")
def sdk() -> Any:
    """The module kubeflow.trainer. Fails, never skips, when it is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module("kubeflow.trainer")
        except ModuleNotFoundError:
            pytest.fail(INSTALL, pytrace=False)


@pytest.fixture
def client(sdk: Any, tmp_path: Path) -> Iterator[Callable[[FakeApi], Any]]:
    """`client(api)` is a TrainerClient for a running FakeApi."""
    opened: list[Any] = []

    def connect(api: FakeApi) -> Any:
        # The SDK takes the namespace from the default kubeconfig only, not from `config_file`.
        config = sdk.KubernetesBackendConfig(config_file=str(api.kubeconfig(tmp_path)), namespace="team-a")
        opened.append(sdk.TrainerClient(config))
        return opened[-1]

    yield connect
    for each in opened:
        each.backend.custom_api.api_client.close()
