"""Where a job keeps checkpoints and its model cache, in a user's words: claims and S3.

The contract with a program is one variable, TRAINJOB_CHECKPOINT_URL: the folder to save into and to
resume from, as a path under /checkpoints or as s3://bucket/folder. Unset it means /checkpoints. The runtimes also
set TRAINJOB_UID, which a job and its restarts have in common: the UID of the JobSet, "" before JobSet 0.10.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from trainjob.kube import names

CHECKPOINTS: Final = "/checkpoints"
CACHE: Final = "/cache"
URL_VARIABLE: Final = "TRAINJOB_CHECKPOINT_URL"
RUN_VARIABLE: Final = "TRAINJOB_UID"
# "I know that this job keeps no checkpoints."
ANNOTATION: Final = "trainjob.dev/checkpoints"
NONE: Final = "none"

RWO, RWOP, RWX, ROX = "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany", "ReadOnlyMany"
MODES: Final[Mapping[str, str]] = {"rwo": RWO, "rwop": RWOP, "rwx": RWX, "rox": ROX}

# Variable that the AWS libraries read (boto's, and so s3fs's) -> keys of the Secret. The keys are those of
# a data connection of OpenShift AI and Open Data Hub; AWS_ENDPOINT_URL is boto's own name for the same.
# botocore prefers the variable of the service to the one of all services, and passes empty ones over.
S3_REQUIRED: Final[Mapping[str, str]] = {
    "AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
}
S3_OPTIONAL: Final[Mapping[str, str]] = {
    "AWS_ENDPOINT_URL": "AWS_S3_ENDPOINT",
    "AWS_ENDPOINT_URL_S3": "AWS_ENDPOINT_URL",
    "AWS_DEFAULT_REGION": "AWS_DEFAULT_REGION",
}
BUCKET_VARIABLE: Final = "AWS_S3_BUCKET"
_SECRET_TEXT: Final = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_BUCKET_OF_SECRET: Final = f"$({BUCKET_VARIABLE})"
# A cache that cannot be written: libraries that write beside the models go elsewhere, and nothing is fetched.
READ_ONLY_CACHE: Final[Mapping[str, str]] = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_CACHE": "/home/trainer/.cache/datasets",
    "HF_MODULES_CACHE": "/home/trainer/.cache/modules",
    "XDG_CACHE_HOME": "/home/trainer/.cache",
    "TORCHINDUCTOR_CACHE_DIR": "/home/trainer/.cache/inductor",
    "TRITON_CACHE_DIR": "/home/trainer/.cache/triton",
}


class StorageError(ValueError):
    """A claim or URL that cannot be meant; the text says what is right."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim in the job's namespace.

    `access`: its access mode if you know it, as "ReadWriteMany" or "rwx"; several nodes need to know.
    `folder`: of checkpoints only: the folder of this run below /checkpoints, so that jobs share a claim.
    `read_only`: mount it so; a ReadOnlyMany claim always is.
    """

    name: str
    access: str = ""
    folder: str = ""
    read_only: bool = False

    def __post_init__(self) -> None:
        if not names.is_subdomain(self.name):
            raise StorageError(f'"{self.name}" is no name of a PersistentVolumeClaim')
        mode = MODES.get(self.access.lower(), self.access)
        if mode and mode not in MODES.values():
            raise StorageError(
                f'claim "{self.name}": no access mode "{self.access}"; there are {", ".join(MODES.values())}, '
                f"in short {', '.join(MODES)}"
            )
        if self.folder.startswith("/") or ".." in self.folder.split("/"):
            raise StorageError(f'claim "{self.name}": "{self.folder}" is no folder below /checkpoints')
        object.__setattr__(self, "access", mode)
        object.__setattr__(self, "read_only", self.read_only or mode == ROX)

    @property
    def url(self) -> str:
        """The folder as a program sees it, of a claim at /checkpoints."""
        return f"{CHECKPOINTS}/{self.folder}".rstrip("/")


def parse_claim(text: str | Claim) -> Claim:
    """`NAME[/FOLDER][:MODE]`, MODE being rwo, rwop, rwx, rox or ro, or two of them with a comma.

    Raises StorageError.
    """
    if isinstance(text, Claim):
        return text
    rest, colon, modes = text.partition(":")
    name, _, folder = rest.partition("/")
    claim = Claim(name, folder=folder)
    for mode in modes.split(",") if colon else ():
        if mode == "ro":
            claim = replace(claim, read_only=True)
        elif mode in MODES and not claim.access:
            claim = replace(claim, access=mode)
        else:
            raise StorageError(f'"{text}": after the colon one of {", ".join(MODES)}, and ro to mount it read-only')
    return claim


def check_url(url: str, secret: str | None) -> str:
    """An S3 folder without a slash at the end. Raises StorageError."""
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.rstrip("/").partition("/")
    if scheme != "s3":
        raise StorageError(f'"{url}": only s3:// is known here; for other storage set {URL_VARIABLE} in env')
    if bucket == _BUCKET_OF_SECRET:
        if not secret:
            raise StorageError(f'"{url}": {_BUCKET_OF_SECRET} is read from the Secret; name it (s3_secret)')
    elif not _BUCKET.match(bucket):
        raise StorageError(f'"{url}": "{bucket}" is no name of a bucket; write s3://bucket/folder-of-this-run')
    if not prefix:
        raise StorageError(f'"{url}": name a folder of this run too, or every job in the bucket resumes from it')
    return url.rstrip("/")


def s3_env(secret: str | None, url: str = "") -> dict[str, Mapping[str, Any]]:
    """The variables of the AWS libraries by reference to a Secret, and the bucket where `url` names it."""
    if not secret:
        return {}

    def source(key: str, **more: bool) -> dict[str, Any]:
        return {"secretKeyRef": {"name": secret, "key": key, **more}}

    env: dict[str, Mapping[str, Any]] = {name: source(key) for name, key in S3_REQUIRED.items()}
    env |= {name: source(key, optional=True) for name, key in S3_OPTIONAL.items()}
    if _BUCKET_OF_SECRET in url:
        env[BUCKET_VARIABLE] = source(BUCKET_VARIABLE)
    return env


@dataclass(frozen=True, slots=True)
class Storage:
    """What a job mounts, by path, and what its program is told."""

    mounts: Mapping[str, Claim]
    env: Mapping[str, Mapping[str, Any] | str]


def storage(
    checkpoints: str | Claim | None,
    cache: str | Claim | None,
    claims: Mapping[str, str | Claim],
    secret: str | None,
    env: Mapping[str, Any],
) -> Storage:
    """Mounts and variables of a job. The caller's own `env` stays what it is and wins.

    Raises StorageError, also for a credential that stands in `env` as text.
    """
    for name in _SECRET_TEXT:
        if isinstance(env.get(name), str):
            raise StorageError(
                f"{name} as text would stand in the TrainJob for whoever may read it: put it into a Secret and name "
                "that (s3_secret)"
            )
    mounts = {path.rstrip("/") or "/": parse_claim(claim) for path, claim in claims.items()}
    told: dict[str, Mapping[str, Any] | str] = {}
    if isinstance(checkpoints, str) and "://" in checkpoints:
        url = check_url(checkpoints, secret)
        told |= s3_env(secret, url)
        told[URL_VARIABLE] = url
        checkpoints = None
    else:
        told |= s3_env(secret)
    for path, given in ((CACHE, cache), (CHECKPOINTS, checkpoints)):
        if given is not None:
            if path in mounts:
                raise StorageError(f"two claims for {path}: name one")
            mounts[path] = parse_claim(given)
    if checkpoints is not None and mounts[CHECKPOINTS].folder:
        told[URL_VARIABLE] = mounts[CHECKPOINTS].url
    if CACHE in mounts and mounts[CACHE].read_only:
        told |= READ_ONLY_CACHE
    return Storage(mounts, {**told, **env})
