"""Why a difference between v1 and v2 is right, or who warns about it. Nothing else is accepted.

A row matches a difference by its path and, where that says too little, by its values. A row that
names finding codes holds only for a job whose own migration said one of them; the others are by
design, and `migration/DIFFERENCES.md` is where they are documented. A full run fails for a row that
matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tests.e2e.differential.compare import Difference

Test = Callable[[Difference], bool]


class Tag(StrEnum):
    """What kind of job it is, where a row holds for one kind only."""

    NO_MASTER = "it has no Master"
    NO_COUNT = "its program starts no processes by PET_NPROC_PER_NODE"
    WORKER_GOES_ON = "in v1 it had succeeded before every Worker had"
    FAILED = "it failed on both sides"
    TRIED_AGAIN = "a rank was started again on both sides"
    ALWAYS = "its restartPolicy is Always"
    TORCHRUN = "its pods start torchrun, and what was seen is torchrun itself"
    TORCH_WORKERS = "its programs are workers of a real torchrun"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a job beside the difference: the codes of its migration, and what kind it is."""

    codes: frozenset[str] = frozenset()
    tags: frozenset[Tag] = frozenset()


@dataclass(frozen=True, slots=True)
class Explanation:
    """One row of migration/DIFFERENCES.md.

    `path`: a pattern of the difference's path. `codes`: findings of which the job must have one.
    `tags`: kinds of jobs of which it must be one.
    """

    id: str
    what: str
    v1: str
    v2: str
    why: str
    path: str
    codes: tuple[str, ...] = ()
    holds: Test = lambda _: True
    tags: tuple[Tag, ...] = ()

    def matches(self, difference: Difference, facts: Facts) -> bool:
        """Whether this row explains a difference of such a job."""
        if not re.fullmatch(self.path, difference.what) or not self.holds(difference):
            return False
        ours = not self.tags or bool({*self.tags} & facts.tags)
        return ours and (not self.codes or bool({*self.codes} & facts.codes))
