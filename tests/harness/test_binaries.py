from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.cluster import binaries
from tests.cluster.context import CACHE_VARIABLE, Context
from tests.cluster.problems import ClusterError
from tests.cluster.versions import ETCD, KUBERNETES_PROGRAMS, KUEUE, KUEUE_MODULE, Program

BUILDINFO = """kueue: go1.26.8
\tpath\tsigs.k8s.io/kueue/cmd/kueue
\tmod\tsigs.k8s.io/kueue\t{version}\th1:abc=
\tdep\tk8s.io/api\tv0.35.3\th1:def=
\tbuild\t-trimpath=true
"""


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    return Context("test", home=tmp_path / "home")


@pytest.fixture(name="folder")
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder with one program, and a `go` that says what it was built from."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "kueue").write_bytes(b"program")
    (cache / "SHA256SUMS").write_text(f"{hashlib.sha256(b'program').hexdigest()}  kueue\n")
    fake_go(tmp_path, monkeypatch, BUILDINFO.format(version="v0.17.0"))
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    return cache


def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    programs = tmp_path / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "said").write_text(says)
    (programs / "go").write_text(
        f'#!/bin/sh\n[ "$1" = version ] && exec cat {programs}/said\necho no "$@" >&2\nexit 1\n'
    )
    (programs / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")


def test_a_program_of_the_cache_is_taken_and_kept(ctx: Context, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = binaries.provide(ctx, [KUEUE])["kueue"]
    assert found.read_bytes() == b"program"
    assert found.is_relative_to(ctx.home)
    monkeypatch.delenv(CACHE_VARIABLE)
    (folder / "kueue").unlink()
    assert binaries.provide(ctx, [KUEUE])["kueue"] == found


def test_a_wrong_checksum_in_the_cache_is_an_error_not_a_build(ctx: Context, folder: Path) -> None:
    (folder / "kueue").write_bytes(b"another program")
    with pytest.raises(ClusterError, match=r"kueue from .* has the checksum .* SHA256SUMS says") as caught:
        binaries.provide(ctx, [KUEUE])
    assert CACHE_VARIABLE in caught.value.next_step
    assert not (ctx.home / "bin").exists()


@pytest.mark.usefixtures("folder")
def test_another_version_in_the_cache_is_not_taken(
    ctx: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(tmp_path, monkeypatch, BUILDINFO.format(version="v0.16.0"))
    with pytest.raises(ClusterError, match=f"cannot download the Go module {KUEUE_MODULE.at}"):
        binaries.provide(ctx, [KUEUE])


@pytest.mark.usefixtures("folder")
def test_a_program_that_was_damaged_after_it_was_kept_is_fetched_again(ctx: Context) -> None:
    found = binaries.provide(ctx, [KUEUE])["kueue"]
    found.write_bytes(b"damaged")
    assert binaries.provide(ctx, [KUEUE])["kueue"].read_bytes() == b"program"


def test_a_cache_without_its_list_of_checksums_is_refused(ctx: Context, folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(ClusterError, match="has no SHA256SUMS"):
        binaries.provide(ctx, [KUEUE])


def test_checksum_lines_are_those_of_sha256sum() -> None:
    digest = "a" * 64
    assert binaries.parse_checksums(f"# note\n{digest}  etcd\n\n{digest} *kubectl\n") == {
        "etcd": digest,
        "kubectl": digest,
    }
    with pytest.raises(ClusterError, match="line 2 is no checksum line"):
        binaries.parse_checksums(f"{digest}  etcd\nabc  kubectl\n")


def test_a_module_with_another_checksum_is_refused() -> None:
    binaries.check_module(KUEUE_MODULE, KUEUE_MODULE.checksum)
    with pytest.raises(ClusterError, match=r"kueue@v0\.17\.0 has the checksum h1:other="):
        binaries.check_module(KUEUE_MODULE, "h1:other=")


def test_build_information_names_the_module_and_what_it_needs() -> None:
    assert binaries.built_from(BUILDINFO.format(version="v0.17.0")) == {
        "sigs.k8s.io/kueue": "v0.17.0",
        "k8s.io/api": "v0.35.3",
    }


@pytest.mark.parametrize("program", KUBERNETES_PROGRAMS, ids=lambda program: program.name)
def test_kubernetes_is_told_its_version(program: Program) -> None:
    flags = binaries.link_flags(program.module)
    assert "-X k8s.io/component-base/version.gitVersion=v1.34.4" in flags
    assert "-X k8s.io/client-go/pkg/version.gitMinor=34" in flags


def test_kueue_is_told_its_version() -> None:
    assert binaries.link_flags(KUEUE_MODULE).endswith("-X sigs.k8s.io/kueue/pkg/version.GitVersion=v0.17.0")


def test_other_programs_need_no_such_flags() -> None:
    assert binaries.link_flags(ETCD.module) == "-s -w"
