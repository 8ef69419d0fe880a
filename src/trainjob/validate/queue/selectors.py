"""Label selectors, taints and node affinity, as far as Kueue looks at them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from trainjob.validate.view import dig, entries, listed, mapping, text


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """A LabelSelector: null selects nothing, `{}` everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in mapping(selector.get("matchLabels")).items()):
        return False
    return all(_holds(expression, labels) for _, expression in entries(selector, "matchExpressions"))


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = text(expression.get("key")), listed(expression.get("values"))
    there = key in labels
    match expression.get("operator"):
        case "In":
            return there and labels[key] in values
        case "NotIn":
            return not there or labels[key] not in values
        case "Exists":
            return there
        case "DoesNotExist":
            return not there
        case "Gt" | "Lt" as operator:
            try:
                label, bound = int(labels[key]), int(values[0])
            except (KeyError, ValueError, IndexError):
                return False
            return label > bound if operator == "Gt" else label < bound
    return False


def describe(selector: Mapping[str, Any]) -> str:
    """A selector as kubectl would take it."""
    parts = [f"{key}={value}" for key, value in mapping(selector.get("matchLabels")).items()]
    for _, expression in entries(selector, "matchExpressions"):
        values = ",".join(map(str, listed(expression.get("values"))))
        parts.append(f"{expression.get('key')} {expression.get('operator')}" + (f" ({values})" if values else ""))
    return ", ".join(parts) or "everything"


def untolerated(flavor: Mapping[str, Any], pod: Mapping[str, Any]) -> str:
    """The first taint of a flavor that neither the pod nor the flavor tolerates, or "".

    kueue v0.17.0 pkg/scheduler/flavorassigner/flavorassigner.go, checkFlavorForPodSets.
    """
    tolerations = [*listed(pod.get("tolerations")), *listed(dig(flavor, "spec", "tolerations"))]
    for _, taint in entries(flavor, "spec", "nodeTaints"):
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not any(
            _tolerates(mapping(toleration), taint) for toleration in tolerations
        ):
            return f"{taint.get('key')}={taint.get('value', '')}:{taint.get('effect')}"
    return ""


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key, exists = text(toleration.get("key")), toleration.get("operator") == "Exists"
    if not key:
        return exists
    return key == taint.get("key") and (exists or text(toleration.get("value")) == text(taint.get("value")))


def fits_nodes(pod: Mapping[str, Any], labels: Mapping[str, str], keys: Set[str]) -> bool:
    """Whether the pod's node selector and required affinity allow nodes with these labels.

    Only the keys that some flavor of the group names are compared (flavorSelector in Kueue).
    """
    for key, value in mapping(pod.get("nodeSelector")).items():
        if key in keys and labels.get(key) != value:
            return False
    node = dig(pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = []
    for _, term in entries(node, "nodeSelectorTerms"):
        expressions = [e for _, e in entries(term, "matchExpressions") if e.get("key") in keys]
        if not expressions:  # terms are ORed: one without a known key allows every flavor
            return True
        terms.append(expressions)
    return not terms or any(all(_holds(e, labels) for e in term) for term in terms)
