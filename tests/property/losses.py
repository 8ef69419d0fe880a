"""Which values of a v1 job are neither in the output nor under a finding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trainjob.kube import yaml
from trainjob.migrate import Migration

Obj = dict[str, Any]


def objects(result: Migration) -> list[Obj]:
    """The written objects."""
    return [doc.data for doc in yaml.load(result.text)]


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every scalar with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, (*path, i))
    else:
        yield path, value


def last_key(path: tuple[str | int, ...]) -> str:
    """The name of the field that holds a value, also of an item of a list."""
    return next(p for p in reversed(path) if isinstance(p, str))


# Findings at a whole job, role or training container are about many fields and answer for none.
WHOLE = re.compile(r"(metadata|spec\.pytorchReplicaSpecs(\.\w+)?(\.template\.spec\.containers\[\d+\])?)?\Z")
SERVER = re.compile(r"metadata\.\w+|\bstatus\b")
HOST = re.compile(r"the v1 host name (\S+) becomes (\S+)")
ROLE = re.compile(r"(?<=pytorchReplicaSpecs\.)\w+")
# What says the same as nothing, or what every TrainJob says in another word.
TRANSLATED = re.compile(
    r"apiVersion\Z|kind\Z|.*\.replicas\Z|.*containers\[\d+\]\.name\Z|.*\.fieldRef\.apiVersion\Z|.*\.containerName\Z"
    r"|spec\.nprocPerNode\Z|spec\.pytorchReplicaSpecs\.\w+\.restartPolicy\Z"
)
DEFAULTS = {
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
    ("terminationGracePeriodSeconds", 30),
    ("terminationMessagePath", "/dev/termination-log"),
    ("suspend", False),
    ("hostPID", False),
    ("readOnly", False),
    ("optional", False),
    ("medium", ""),
}


def lost(job: Obj, result: Migration) -> list[str]:
    """Values of the job that are neither in the output nor under a finding."""
    out = [(last_key(path), value) for doc in objects(result) for path, value in leaves(doc)]
    texts = [str(value) for _, value in out] + [key for doc in objects(result) for key in keys(doc)]
    told = {ROLE.sub("*", f.where.path) for f in result.findings if f.where and not WHOLE.match(f.where.path)}
    told |= {name for f in result.findings if f.code == "TJ107" for name in SERVER.findall(f.message)}
    hosts = dict(m.groups() for f in result.findings if (m := HOST.search(f.message)))
    missing = []
    for path, value in leaves(job):
        name, here = last_key(path), yaml.dotted(path)
        for old, new in hosts.items():
            value = value.replace(old, new) if isinstance(value, str) else value
        if TRANSLATED.match(here) or (name, value) in DEFAULTS:
            continue
        if any((value_out == value or str(value_out) == str(value)) and key == name for key, value_out in out):
            continue
        if isinstance(value, str) and value and any(value.strip() in text for text in texts):
            continue
        place = ROLE.sub("*", here)
        if not any(place == t or place.startswith((f"{t}.", f"{t}[")) for t in told):
            missing.append(f"{here}: {value!r}")
    return missing


def keys(value: Any) -> Iterator[str]:
    """Every key of every mapping."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item)
