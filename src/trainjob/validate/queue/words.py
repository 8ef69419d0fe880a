"""The numbers of a refusal, in words."""

from __future__ import annotations

from collections.abc import Sequence

from trainjob.validate.queue.amounts import show
from trainjob.validate.queue.demand import PodSet
from trainjob.validate.queue.objects import Node
from trainjob.validate.queue.quota import Short


def pods(podsets: Sequence[PodSet]) -> str:
    """`3 pods`, or `4 pods (dataset-initializer 1, node 3)` when they are of several kinds."""
    number = sum(p.count for p in podsets)
    kinds = f" ({', '.join(f'{p.name} {p.count}' for p in podsets)})" if len(podsets) > 1 else ""
    return f"{number} pod{'' if number == 1 else 's'}{kinds}"


def nearest(short: Sequence[Short]) -> list[Short]:
    """Of the flavors that are too small, the one that lacks least: what a person would ask about.

    A flavor that gives nothing of a resource is not meant for the job.
    """
    flavors = list(dict.fromkeys(s.flavor for s in short))

    def lack(flavor: str) -> tuple[bool, float]:
        own = [s for s in short if s.flavor == flavor]
        return any(s.capacity == 0 for s in own), max(s.asked / max(s.capacity, 1) for s in own)

    best = min(flavors, key=lack)
    return [s for s in short if s.flavor == best]


def too_large(short: Short, podset: PodSet, queue: str, node: Node) -> str:
    """`queue q: this job asks 3 x 2 = 6 nvidia.com/gpu, the most that ClusterQueue c can ever give is 4 ...`."""
    resource = short.resource
    terms = [(p.count, p.each.get(resource, 0)) for p in (*short.earlier, podset)]
    terms = [(count, each) for count, each in terms if each]
    amount = show(resource, short.asked)
    if resource == "pods":
        asked = f"{amount} pods"
    elif len(terms) == 1 and terms[0][0] == 1:
        asked = f"{amount} {resource}"
    else:
        asked = " + ".join(f"{count} x {show(resource, each)}" for count, each in terms) + f" = {amount} {resource}"
    flavor = "" if sum(len(g.flavors) for g in node.groups) == 1 else f" in flavor {short.flavor}"
    borrowing = show(resource, short.capacity - short.nominal)
    return (
        f"queue {queue}: this job asks {asked}, the most that ClusterQueue {node.name} can ever give{flavor} is "
        f"{show(resource, short.capacity)} (nominal {show(resource, short.nominal)}, borrowing {borrowing}): "
        "it would stay Suspended"
    )
