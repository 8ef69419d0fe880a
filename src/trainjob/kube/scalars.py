"""Plain scalars as go-yaml resolves them (sigs.k8s.io/yaml v1.4, goyaml.v2 resolve.go)."""

from __future__ import annotations

import re
from typing import Any, Final

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE: Final = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_INT: Final = re.compile(r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|[1-9][0-9]*|0)\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_SPECIAL: Final = {
    ".nan": float("nan"), ".NaN": float("nan"), ".NAN": float("nan"),
    ".inf": float("inf"), ".Inf": float("inf"), ".INF": float("inf"),
    "+.inf": float("inf"), "+.Inf": float("inf"), "+.INF": float("inf"),
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
    # `_` may stand anywhere, but not in a number that begins with a point.
    digits = text if text[0] == "." else text.replace("_", "")
    if _INT.match(digits):
        sign = -1 if digits[0] == "-" else 1
        body = digits.lstrip("+-")
        try:
            return sign * int(body, 8 if body[0] == "0" and body.isdecimal() else 0)
        except ValueError:  # thousands of digits
            return float(digits)
    if _FLOAT.match(digits):  # 08 too: it is not octal
        return float(digits)
    return _SPECIAL.get(text, text)
