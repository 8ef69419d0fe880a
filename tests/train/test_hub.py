"""What an error says about the hub, by the names of what led to it."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from trainjob.train import hub
from trainjob.train.faults import Code


def raised(*errors: BaseException) -> BaseException:
    """The last of the errors, each raised because of the one before."""
    for cause, error in pairwise(errors):
        error.__cause__ = cause
    return errors[-1]


def answer(status: int) -> Exception:
    error: Any = RuntimeError(f"status {status}")
    error.response = SimpleNamespace(status_code=status)
    return error  # type: ignore[no-any-return]


def named(name: str) -> BaseException:
    made = type(name, (OSError,), {})
    return made("said\nmore")  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (raised(answer(401), OSError("x")), Code.NO_ACCESS),
        (raised(named("GatedRepoError"), answer(404), OSError("x")), Code.NO_ACCESS),
        (raised(answer(404), OSError("x")), Code.NOT_FOUND),
        (named("HFValidationError"), Code.NOT_FOUND),
        (raised(answer(429), ValueError("x")), Code.HUB),
        (raised(answer(503), OSError("x")), Code.HUB),
        (raised(ConnectionResetError("x"), OSError("x")), Code.HUB),
        (OSError("x"), None),
        (answer(200), None),
    ],
)
def test_what_it_says_of_the_hub(error: BaseException, code: Code | None) -> None:
    assert hub.code(error) is code


def test_an_error_that_led_to_itself_ends() -> None:
    one, other = OSError("one"), OSError("other")
    one.__context__, other.__context__ = other, one
    assert hub.code(one) is None
    assert "OSError" in hub.names(one)


def test_its_first_line() -> None:
    assert hub.line(named("X")) == "said"
    assert hub.line(OSError()) == "OSError"
