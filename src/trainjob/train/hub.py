"""What an error of transformers or huggingface_hub says about the model hub.

By names, not classes: for a model in a folder huggingface_hub need not be imported. Seen with huggingface_hub 2.4 and
httpx 0.28.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainjob.train.faults import Code

_MISSING: Final = frozenset(
    {"RepositoryNotFoundError", "RevisionNotFoundError", "HFValidationError", "RemoteEntryNotFoundError"}
)
_UNREACHED: Final = frozenset(
    {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "NetworkError", "TimeoutException", "ConnectionError"}
)


def names(error: BaseException) -> set[str]:
    """Names of the error's classes, and of those that led to it."""
    return {kind.__name__ for each in _chain(error) for kind in type(each).__mro__}


def line(error: BaseException) -> str:
    """The first line of what it says, or its name."""
    said = str(error).strip().splitlines()
    return said[0] if said else type(error).__name__


def code(error: BaseException) -> Code | None:
    """NO_ACCESS (gated, private, wrong token), NOT_FOUND, HUB (not reached, offline, overloaded), or None."""
    kinds = names(error)
    status = {getattr(getattr(each, "response", None), "status_code", 0) for each in _chain(error)}
    if "GatedRepoError" in kinds or status & {401, 403}:
        return Code.NO_ACCESS
    if kinds & _MISSING or 404 in status:
        return Code.NOT_FOUND
    if kinds & _UNREACHED or any(each == 429 or each >= 500 for each in status):
        return Code.HUB
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
