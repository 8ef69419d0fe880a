"""The one canonical way to write YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from trainjob.kube.scalars import plain

_TAG: Final = "tag:yaml.org,2002:"


class _Dumper(yaml.CSafeDumper):
    """Canonical output: block style, two spaces, lists indented like kubectl, text kept readable."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _represent_str(dumper: Any, text: str) -> Any:
    if "\n" in text and not re.search(
        r"[ \t]\n|[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]|\A\n", text
    ):
        return dumper.represent_scalar(_TAG + "str", text, style="|")
    style = '"' if text == "" or _ambiguous(text) else None
    return dumper.represent_scalar(_TAG + "str", text, style=style)


def _represent_list(dumper: Any, items: list[Any]) -> Any:
    """A long list of numbers (exit codes) stays on one line."""
    flow = len(items) > 8 and all(type(i) is int for i in items)
    return dumper.represent_sequence(_TAG + "seq", items, flow_style=flow)


def _ambiguous(text: str) -> bool:
    """Text that some YAML reader, old or new, would take for something else than text."""
    return not isinstance(plain(text), str) or bool(re.fullmatch(r"[-+]?[0-9][0-9_:.eExXoO+-]*|=|<<", text))


_Dumper.add_representer(str, _represent_str)
_Dumper.add_representer(list, _represent_list)


def dump(data: Mapping[str, Any] | list[Any]) -> str:
    """One object as canonical YAML: key order as given, no anchors, a line end at the end."""
    text = str(
        yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=2**20, allow_unicode=True)
    )
    # libyaml ends a document with `...` when its last text ends with empty lines.
    return text[:-4] if text.endswith("\n...\n") else text


def dump_all(objects: list[Mapping[str, Any]]) -> str:
    """Several objects as one stream, separated by `---`."""
    return "---\n".join(dump(o) for o in objects)
