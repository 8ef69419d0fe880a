"""The real SDK, imported once."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest


@pytest.fixture(scope="session")
def sdk() -> Any:
    """The module kubeflow.trainer 0.5, for real. Fails, never skips, when it is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module("kubeflow.trainer.options")
            return importlib.import_module("kubeflow.trainer")
        except ModuleNotFoundError:
            pytest.fail('the Kubeflow SDK is not installed: pip install "kubeflow>=0.5,<0.6"', pytrace=False)
