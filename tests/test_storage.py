"""Claims and S3 folders in a user's words, and what the program is told."""

from __future__ import annotations

from typing import Any

import pytest

from trainjob.storage import READ_ONLY_CACHE, Claim, Storage, StorageError, check_url, parse_claim, storage


def stored(**more: Any) -> Storage:
    given: dict[str, Any] = {"checkpoints": None, "cache": None, "claims": {}, "secret": None, "env": {}, **more}
    return storage(**given)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("ckpt", Claim("ckpt")),
        ("ckpt:rwx", Claim("ckpt", "ReadWriteMany")),
        ("ckpt:rwop", Claim("ckpt", access="ReadWriteOncePod")),
        ("my.ckpt/a/b:rwo", Claim("my.ckpt", access="ReadWriteOnce", folder="a/b")),
        ("cache:rwx,ro", Claim("cache", access="ReadWriteMany", read_only=True)),
        ("cache:ro", Claim("cache", read_only=True)),
        ("cache:rox", Claim("cache", access="ReadOnlyMany", read_only=True)),
    ],
)
def test_a_claim_as_text(text: str, claim: Claim) -> None:
    assert parse_claim(text) == claim
    assert parse_claim(claim) is claim


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Ckpt", "no name of a PersistentVolumeClaim"),
        ("", "no name"),
        ("ckpt:", "after the colon one of rwo"),
        ("ckpt:rwz", "after the colon one of rwo"),
        ("ckpt:rwo,rwx", "after the colon"),
        ("ckpt/../other", "no folder below /checkpoints"),
        ("ckpt//abs", "no folder below"),
    ],
)
def test_what_is_no_claim(text: str, says: str) -> None:
    with pytest.raises(StorageError, match=says):
        parse_claim(text)


def test_access_modes_short_and_long() -> None:
    assert Claim("a", "RWX") == Claim("a", "ReadWriteMany")
    with pytest.raises(
        StorageError, match="ReadWriteOnce, ReadWriteOncePod, ReadWriteMany, ReadOnlyMany, in short rwo"
    ):
        Claim("a", "ReadWriteSome")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("gs://bucket/run", "only s3:// is known"),
        ("s3://bucket", "name a folder of this run"),
        ("s3://bucket/", "name a folder of this run"),
        ("s3:///run", '"" is no name of a bucket'),
        ("s3://Bucket/run", "no name of a bucket"),
        ("s3://$(AWS_S3_BUCKET)/run", "is read from the Secret; name it"),
        ("s3://$(OTHER)/run", "no name of a bucket"),
    ],
)
def test_what_is_no_s3_folder(url: str, says: str) -> None:
    with pytest.raises(StorageError, match=says.replace("$", r"\$").replace("(", r"\(").replace(")", r"\)")):
        check_url(url, None)


def test_credentials_are_references() -> None:
    """Both spellings of the endpoint: a data connection's, and boto's own."""
    env = stored(checkpoints="s3://training/run-1/", secret="aws-connection").env
    assert env["TRAINJOB_CHECKPOINT_URL"] == "s3://training/run-1"
    keys = {name: e["secretKeyRef"] for name, e in env.items() if not isinstance(e, str)}
    assert {name: (r["name"], r["key"], r.get("optional", False)) for name, r in keys.items()} == {
        "AWS_ACCESS_KEY_ID": ("aws-connection", "AWS_ACCESS_KEY_ID", False),
        "AWS_SECRET_ACCESS_KEY": ("aws-connection", "AWS_SECRET_ACCESS_KEY", False),
        "AWS_ENDPOINT_URL": ("aws-connection", "AWS_S3_ENDPOINT", True),
        "AWS_ENDPOINT_URL_S3": ("aws-connection", "AWS_ENDPOINT_URL", True),
        "AWS_DEFAULT_REGION": ("aws-connection", "AWS_DEFAULT_REGION", True),
    }


def test_the_bucket_of_the_secret_stands_before_its_use() -> None:
    """Kubernetes expands $(NAME) only when NAME stands above."""
    env = stored(checkpoints="s3://$(AWS_S3_BUCKET)/run", secret="aws-connection").env
    assert [n for n in env if n in ("AWS_S3_BUCKET", "TRAINJOB_CHECKPOINT_URL")] == [
        "AWS_S3_BUCKET", "TRAINJOB_CHECKPOINT_URL",
    ]  # fmt: skip


def test_without_a_secret_the_pod_has_an_identity_of_its_own() -> None:
    assert stored(checkpoints="s3://training/run").env == {"TRAINJOB_CHECKPOINT_URL": "s3://training/run"}
    assert "AWS_ACCESS_KEY_ID" in stored(secret="aws-connection").env  # for data


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])
def test_a_credential_as_text_is_refused(name: str) -> None:
    with pytest.raises(StorageError, match=f"{name} as text would stand in the TrainJob"):
        stored(env={name: "hunter2"})
    reference = {"secretKeyRef": {"name": "mine", "key": "k"}}
    assert stored(secret="aws-connection", env={name: reference}).env[name] == reference


def test_the_folder_of_a_run() -> None:
    """/checkpoints itself needs no variable."""
    assert stored(checkpoints="ckpt").env == {}
    assert stored(checkpoints="ckpt/run-1:rwx").env == {"TRAINJOB_CHECKPOINT_URL": "/checkpoints/run-1"}
    assert stored(checkpoints="ckpt/run-1", env={"TRAINJOB_CHECKPOINT_URL": "x"}).env["TRAINJOB_CHECKPOINT_URL"] == "x"


def test_a_cache_that_cannot_be_written() -> None:
    assert stored(cache="models:rwx").env == {}
    told = stored(cache="models:rwx,ro", env={"HF_HUB_OFFLINE": "0"}).env
    assert told == {**READ_ONLY_CACHE, "HF_HUB_OFFLINE": "0"}
    assert stored(claims={"/cache/": Claim("models", read_only=True)}).env == READ_ONLY_CACHE


def test_one_path_has_one_claim() -> None:
    for given in ({"cache": "a", "claims": {"/cache": "b"}}, {"checkpoints": "a", "claims": {"/checkpoints/": "b"}}):
        with pytest.raises(StorageError, match=r"two claims for /c.*: name one"):
            stored(**given)
