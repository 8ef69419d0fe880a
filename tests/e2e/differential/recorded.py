"""Views of some shapes as a run on a cluster saw them, so that what judges them can be tested without one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.e2e.differential.explain import Facts, Tag
from tests.e2e.differential.judge import facts
from tests.e2e.differential.run import Outcome
from tests.e2e.differential.view import View, views

FOLDER: Final = Path(__file__).with_name("recorded")
SHAPES: Final = ("pod/env", "pod/volumes", "pod/identity", "pod/placement", "end/exit-1-never", "end/queue-priority")


def write(outcomes: Mapping[str, Outcome]) -> None:
    """Keeps both views of each shape that is recorded, and what was known of the job."""
    FOLDER.mkdir(exist_ok=True)
    for name in SHAPES:
        v1, v2 = views(outcomes[name])
        known = facts(outcomes[name])
        data = {"codes": sorted(known.codes), "tags": sorted(known.tags), "v1": v1, "v2": v2}
        text = json.dumps(data, indent=1, sort_keys=True) + "\n"
        (FOLDER / f"{name.replace('/', '-')}.json").write_text(text, encoding="utf-8")


def read(name: str) -> tuple[View, View, Facts]:
    """Both views of a recorded shape, and what was known of its job."""
    data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return data["v1"], data["v2"], Facts(frozenset(data["codes"]), frozenset(map(Tag, data["tags"])))
