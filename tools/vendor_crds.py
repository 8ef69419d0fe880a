"""Extract the API facts of Kubeflow Trainer and the Training Operator from their Go modules.

Writes `src/trainjob/_vendor/crds/<project>/<version>/<plural>.json`, the openAPIV3Schema of each
CRD without descriptions, and `src/trainjob/_vendor/UPSTREAM.toml`, which says where each file
comes from. A generated file is never edited by hand: change this tool and run it again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

VENDOR: Final = Path(__file__).resolve().parent.parent / "src" / "trainjob" / "_vendor"

# What the checks and the migrator read. Everything else (descriptions above all) is left out.
KEPT: Final = frozenset({
    "additionalProperties", "allOf", "anyOf", "default", "enum", "exclusiveMaximum", "exclusiveMinimum",
    "format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength",
    "minProperties", "minimum", "multipleOf", "not", "nullable", "oneOf", "pattern", "properties",
    "required", "type", "uniqueItems", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
})  # fmt: skip
DROPPED: Final = frozenset({"description", "example", "externalDocs", "title"})
RULE_KEPT: Final = ("rule", "message", "messageExpression", "fieldPath", "reason", "optionalOldSelf")

EXIT_SAME, EXIT_DIFFERENT, EXIT_NO_GO = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Source:
    """One Go module at one version and the CRDs to take from it, relative to the module root."""

    project: str
    module: str
    version: str
    crds: tuple[tuple[str, ...], ...]  # CRDs in one inner tuple share one schema and one output file


_TRAINER_CRDS: Final = (
    ("manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml",),
    (
        "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml",
        "manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
    ),
)
SOURCES: Final = (
    *(
        Source("trainer", "github.com/kubeflow/trainer/v2", version, _TRAINER_CRDS)
        for version in ("v2.0.1", "v2.1.0", "v2.2.0", "v2.3.0")
    ),
    Source(
        "training-operator",
        "github.com/kubeflow/training-operator",
        "v1.9.4",
        tuple(
            (f"manifests/base/crds/kubeflow.org_{plural}.yaml",)
            for plural in ("pytorchjobs", "jaxjobs", "mpijobs", "xgboostjobs")
        ),
    ),
)


class NoGoError(Exception):
    """Go, or a module, is not to be had on this machine."""


class SurpriseError(Exception):
    """A CRD holds something that this tool was not written for; the message says what."""


def module(source: Source, *, offline: bool) -> Mapping[str, str]:
    """`Dir`, `Sum` and more of a module, downloaded into the module cache if it is not there.

    Raises NoGoError.
    """
    env = {**os.environ, "GOFLAGS": "-mod=mod", "GO111MODULE": "on"}
    if offline:
        env["GOPROXY"] = "off"
    at = f"{source.module}@{source.version}"
    try:
        done = subprocess.run(
            ["go", "mod", "download", "-json", at],
            cwd=Path(__file__).resolve().parent, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError as err:
        raise NoGoError(f"the go command cannot be run: {err.strerror}") from None
    try:
        answer: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        raise NoGoError(f"go mod download {at} failed: {done.stderr.strip()[:300]}") from None
    if "Error" in answer or "Dir" not in answer:
        raise NoGoError(f"go mod download {at} failed: {answer.get('Error', '')[:300]}")
    return answer


def facts(schema: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """A structural schema without descriptions. Raises SurpriseError for a keyword that is not known."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in DROPPED:
            continue
        if key not in KEPT:
            raise SurpriseError(f"{where or 'the root'} has the keyword {key!r}")
        if key == "properties":
            out[key] = {name: facts(child, f"{where}.{name}") for name, child in value.items()}
        elif key in ("items", "additionalProperties", "not") and isinstance(value, dict):
            out[key] = facts(value, f"{where}[]")
        elif key in ("allOf", "anyOf", "oneOf"):
            out[key] = [facts(child, where) for child in value]
        elif key == "x-kubernetes-validations":
            for rule in value:
                if extra := set(rule) - set(RULE_KEPT):
                    raise SurpriseError(f"{where} has a CEL rule with {sorted(extra)}")
            out[key] = [{k: rule[k] for k in RULE_KEPT if k in rule} for rule in value]
        else:
            out[key] = value
    return out


def compact(schema: Mapping[str, Any]) -> bytes:
    return (json.dumps(schema, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def generate(*, offline: bool = False) -> dict[str, bytes]:
    """Every vendored file, relative to `_vendor`. Raises NoGoError and SurpriseError."""
    out: dict[str, bytes] = {}
    entries: list[dict[str, Any]] = []
    for source in SOURCES:
        answer = module(source, offline=offline)
        for crds in source.crds:
            entry, content = _extract(source, answer, crds)
            entries.append(entry)
            out[entry["file"]] = content
    out["UPSTREAM.toml"] = _toml(entries).encode()
    return out


def _extract(source: Source, answer: Mapping[str, str], crds: tuple[str, ...]) -> tuple[dict[str, Any], bytes]:
    kinds: list[str] = []
    digests: list[str] = []
    contents: set[bytes] = set()
    plural, group, served = "", "", ""
    for crd in crds:
        data = (Path(answer["Dir"]) / crd).read_bytes()
        digests.append(hashlib.sha256(data).hexdigest())
        spec = yaml.load(data, Loader=yaml.CSafeLoader)["spec"]
        if len(spec["versions"]) != 1:
            raise SurpriseError(f"{crd} serves {len(spec['versions'])} versions")
        if spec.get("preserveUnknownFields"):
            raise SurpriseError(f"{crd} preserves unknown fields")
        group, served = spec["group"], spec["versions"][0]["name"]
        kinds.append(spec["names"]["kind"])
        plural = plural or spec["names"]["plural"]
        contents.add(compact(facts(spec["versions"][0]["schema"]["openAPIV3Schema"])))
    if len(contents) != 1:
        raise SurpriseError(f"{source.version}: {' and '.join(kinds)} no longer share a schema")
    content = contents.pop()
    return {
        "file": f"crds/{source.project}/{source.version}/{plural}.json",
        "sha256": hashlib.sha256(content).hexdigest(),
        "api": f"{group}/{served}",
        "kinds": kinds,
        "repository": "github.com/kubeflow/trainer",
        "tag": source.version,
        "module": source.module,
        "module_sum": answer["Sum"],
        "sources": list(crds),
        "sources_sha256": digests,
        "licence": "Apache-2.0",
        "changes": "descriptions removed",
    }, content


def _toml(entries: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "# Generated by tools/vendor_crds.py, do not edit. Where each file under crds/ comes from:",
        "# the openAPIV3Schema of the CRDs `sources` in the Go module `module` at `tag`, whose checksum",
        "# is `module_sum`. `sha256` is of the file here, `sources_sha256` of the original YAML.",
        "# Upstream licence: Apache License 2.0, see NOTICE.",
    ]
    for entry in entries:
        lines += ["", "[[file]]"]
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    return "\n".join(lines) + "\n"


def present(root: Path) -> dict[str, bytes]:
    """The generated files that are on disk now, relative to `root`."""
    paths = sorted((root / "crds").rglob("*")) if (root / "crds").is_dir() else []
    out = {p.relative_to(root).as_posix(): p.read_bytes() for p in paths if p.is_file()}
    if (root / "UPSTREAM.toml").is_file():
        out["UPSTREAM.toml"] = (root / "UPSTREAM.toml").read_bytes()
    return out


def differences(wanted: Mapping[str, bytes], found: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            yield f"missing: {name}"
        elif name not in wanted:
            yield f"not generated by this tool: {name}"
        elif wanted[name] != found[name]:
            yield f"differs: {name}"


def write(wanted: Mapping[str, bytes], root: Path) -> None:
    for name in present(root).keys() - wanted.keys():
        (root / name).unlink()
    for name, content in wanted.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="vendor_crds.py",
        description="Write the API facts under src/trainjob/_vendor from the CRDs inside Go modules. "
        "Needs the go command; modules that are not in its cache are downloaded and verified by it.",
        epilog="Exit codes: 0 written, or with --check nothing differs; 1 something differs (it is listed) "
        "or a CRD holds something new; 2 go or a module is not available.",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing: regenerate in memory and list what differs"
    )
    parser.add_argument("--offline", action="store_true", help="use only modules that are already in the module cache")
    parser.add_argument(
        "--to",
        type=Path,
        default=VENDOR,
        metavar="FOLDER",
        help="the folder to write or check (default: the one of this checkout)",
    )
    args = parser.parse_args(argv)
    try:
        wanted = generate(offline=args.offline)
    except NoGoError as err:
        print(f"vendor_crds.py: {err}", file=sys.stderr)
        return EXIT_NO_GO
    except SurpriseError as err:
        print(f"vendor_crds.py: {err}", file=sys.stderr)
        return EXIT_DIFFERENT
    if args.check:
        different = list(differences(wanted, present(args.to)))
        for line in different:
            print(line)
        return EXIT_DIFFERENT if different else EXIT_SAME
    write(wanted, args.to)
    print(f"{len(wanted)} files, {sum(map(len, wanted.values())):,} bytes in {args.to}")
    return EXIT_SAME


if __name__ == "__main__":
    sys.exit(main())
