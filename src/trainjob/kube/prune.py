"""Remove what says nothing: empty texts, lists and maps, and `false` where false is the default.

Kueue up to 0.19 rewrites a TrainJob through Go types with `omitempty`; a written-out zero value is
dropped by that, and the API server answers "field is immutable": the job stays suspended for ever
(kubeflow/trainer#3888). Values of pointer fields (`runAsUser: 0`) and of free maps (a nodeSelector
with an empty text) survive and are kept.
"""

from __future__ import annotations

from typing import Any, Final

# An empty map is the whole choice here.
_MEANT_EMPTY: Final = frozenset({"emptyDir", "labelSelector", "namespaceSelector"})
# Maps whose keys and values are the user's own.
_FREE_MAPS: Final = frozenset(
    {"labels", "annotations", "nodeSelector", "matchLabels", "limits", "requests", "volumeAttributes"}
)
# Go bool fields without a pointer, or pointers whose default is false.
_FALSE_IS_DEFAULT: Final = frozenset(
    {"readOnly", "optional", "stdin", "stdinOnce", "tty", "hostNetwork", "hostPID", "hostIPC", "suspend"}
)


def prune(value: Any, key: str = "") -> Any:
    """A copy without empties; None when nothing is left."""
    if isinstance(value, dict):
        if key in _FREE_MAPS:
            return dict(value) or None
        out = {}
        for k, v in value.items():
            kept = prune(v, k)
            if kept is not None:
                out[k] = kept
        return out if out or key in _MEANT_EMPTY else None
    if isinstance(value, list | tuple):
        if key in ("command", "args"):
            return list(value) or None
        items = [prune(v) if isinstance(v, dict | list) else v for v in value]
        return [v for v in items if v is not None] or None
    if value == "" and key != "storageClassName":
        return None
    if value is False and key in _FALSE_IS_DEFAULT:
        return None
    return value
