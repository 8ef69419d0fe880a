"""Plain scalars as go-yaml resolves them (sigs.k8s.io/yaml v1.4, goyaml.v2 resolve.go)."""

from __future__ import annotations

import re
from typing import Any, Final

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE: Final = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|[0-9][0-9_]*)\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_SPECIAL: Final = {
    ".nan": float("nan"), ".NaN": float("nan"), ".NAN": float("nan"),
    ".inf": float("inf"), ".Inf": float("inf"), ".INF": float("inf"),
    "-.inf": float("-inf"), "-.Inf": float("-inf"), "-.INF": float("-inf"),
}  # fmt: skip


def plain(text: str) -> Any:
    """What go-yaml makes of a plain scalar: None, bool, int, float or the text itself."""
    if not text:
        return None
    head = text[0]
    if head in "+-.0123456789":
        return _number(text)
    if head in "~nNtTfFyYoO":
        if text in _NULL:
            return None
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
    return text


def _number(text: str) -> Any:
    if _INT.match(text):
        digits = text.replace("_", "")
        sign = -1 if digits[0] == "-" else 1
        body = digits.lstrip("+-")
        try:
            if body[:2] in ("0x", "0X", "0b", "0o"):
                return sign * int(body, 0)
            if len(body) > 1 and body[0] == "0":
                return sign * int(body, 8)
            return sign * int(body)
        except ValueError:  # 08: not octal, so go-yaml tries a float next
            pass
    if _FLOAT.match(text):
        try:
            return float(text.replace("_", ""))
        except ValueError:
            return text
    return _SPECIAL.get(text, text)
