"""All shapes of the suite."""

from __future__ import annotations

from typing import Final

from tests.e2e.differential.behaviour import behaviour
from tests.e2e.differential.cases import cases
from tests.e2e.differential.features import features
from tests.e2e.differential.matrix import matrix
from tests.e2e.differential.shape import Shape

SHAPES: Final[tuple[Shape, ...]] = (*cases(), *matrix(), *features(), *behaviour())
