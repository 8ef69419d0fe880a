"""Programs: from the work folder, else from a cache folder, else built from Go modules.

A cache folder (TRAINJOB_CLUSTER_CACHE) holds SHA256SUMS and the programs, as plain files or in one
`binaries-linux-ARCH.tar.zst`. What it holds is taken when its checksum is right and its module version
is the wanted one. A wrong checksum is an error, never a reason to build quietly.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from . import engine
from .context import CACHE_VARIABLE, Context, cache, read_json, write_json
from .problems import ClusterError
from .versions import KUBERNETES_MODULE, KUEUE_MODULE, Module, Program

_GOMOD: Final = Path(__file__).with_name("gomod")
_SUM_LINE: Final = re.compile(r"([0-9a-f]{64})[ \t]+\*?(\S+)")
_BUILD_SECONDS: Final = 3600


def provide(ctx: Context, programs: Iterable[Program]) -> dict[str, Path]:
    """Where each program lies, by its name. Gets or builds those that are missing."""
    wanted = list(programs)
    missing = [program for program in wanted if not _kept(ctx, program)]
    if missing and (folder := cache()):
        missing = _from_cache(ctx, missing, folder)
    for program in missing:
        with ctx.progress.step(f"build {program.name} {program.module.version}"):
            _build(ctx, program)
    return {program.name: _place(ctx, program) for program in wanted}


def module_folder(ctx: Context, module: Module) -> Path:
    """The unpacked module, downloaded if need be, its checksum compared with the pinned one."""
    found = ctx.sh.run(
        _go(), "mod", "download", "-json", module.at, env=go_env(ctx), timeout=600, check=False, cwd=_neutral(ctx)
    )  # fmt: skip
    try:
        answer = json.loads(found.out)
    except ValueError:
        answer = {"Error": found.err}
    if "Dir" not in answer:
        raise ClusterError(
            f"cannot download the Go module {module.at}",
            "see that this machine reaches its Go module proxy (`go env GOPROXY`)",
            str(answer.get("Error", found.err)),
        )
    check_module(module, str(answer.get("Sum")))
    return Path(answer["Dir"])


def check_module(module: Module, checksum: str) -> None:
    """Fails when a module is not the one that was pinned."""
    if checksum != module.checksum:
        raise ClusterError(
            f"the Go module {module.at} has the checksum {checksum}, not {module.checksum}",
            "do not build from it: find out where it came from (`go env GOPROXY`), and change versions.py only if"
            " upstream says that the new checksum is right",
        )


def parse_checksums(text: str) -> dict[str, str]:
    """File name -> SHA-256, from the lines that `sha256sum` writes."""
    sums: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _SUM_LINE.fullmatch(line.strip())
        if not match:
            raise ClusterError(f"SHA256SUMS: line {number} is no checksum line: {line}", "write it with `sha256sum *`")
        sums[match[2]] = match[1]
    return sums


def check_file(file: Path, expected: str, origin: str) -> None:
    """Fails when a file of the cache is not the one its list of checksums names."""
    actual = sha256(file)
    if actual != expected:
        raise ClusterError(
            f"{file.name} from {origin} has the checksum {actual}, SHA256SUMS says {expected}",
            f"replace the cache folder by a sound copy, or unset {CACHE_VARIABLE} to build the programs instead",
        )


def sha256(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def built_from(buildinfo: str) -> dict[str, str]:
    """Module path -> version, from the text of `go version -m PROGRAM`."""
    modules: dict[str, str] = {}
    for line in buildinfo.splitlines():
        fields = line.split()
        if len(fields) >= 3 and fields[0] in {"mod", "dep"}:
            modules[fields[1]] = fields[2]
    return modules


def link_flags(module: Module) -> str:
    """Linker flags: no symbols, and the version that the program reports where its module has a place for it."""
    flags = ["-s", "-w"]
    if module.path == KUBERNETES_MODULE.path:
        major, minor, _ = module.version.removeprefix("v").split(".")
        # kubeadm refuses to work with an API server of no version.
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            for name, value in (("gitVersion", module.version), ("gitMajor", major), ("gitMinor", minor)):
                flags += ["-X", f"{package}.{name}={value}"]
    if module.path in {KUEUE_MODULE.path, "sigs.k8s.io/jobset"}:
        flags += ["-X", f"{module.path}/pkg/version.GitVersion={module.version}"]
    return " ".join(flags)


def go_env(ctx: Context) -> dict[str, str]:
    """Go's own folders inside the work folder, deletable without more ado."""
    return {
        "GOPATH": str(ctx.home / "go"),
        "GOMODCACHE": str(ctx.home / "go" / "pkg" / "mod"),
        "GOCACHE": str(ctx.home / "go" / "build"),
        "GOFLAGS": "-modcacherw -buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }


def _kept(ctx: Context, program: Program) -> bool:
    """Whether the work folder has the program, unharmed."""
    file = _place(ctx, program)
    expected = read_json(_sums(ctx)).get(_key(ctx, program))
    return bool(expected) and file.is_file() and sha256(file) == expected


def _from_cache(ctx: Context, programs: list[Program], folder: Path) -> list[Program]:
    """Takes what the cache has; returns the programs that have to be built."""
    sums_file = folder / "SHA256SUMS"
    if not sums_file.is_file():
        raise ClusterError(
            f"the cache folder {folder} has no SHA256SUMS", f"point {CACHE_VARIABLE} at one that has, or unset it"
        )
    sums = parse_checksums(sums_file.read_text())
    takeable = [program for program in programs if not program.on_host and program.name in sums]
    if not takeable:
        return programs
    archive = folder / f"binaries-linux-{ctx.host.arch}.tar.zst"
    unpacked = _neutral(ctx) / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir(parents=True)
    try:
        with ctx.progress.step(f"programs from {folder}"):
            packed = [program.name for program in takeable if not (folder / program.name).is_file()]
            if packed and archive.is_file():
                engine.require_commands(ctx, "zstd")
                # Tar starts the decompressor with the window that a high level of compression needs.
                ctx.sh.run(
                    "tar", "-I", "zstd -d --long=27", "-xf", archive, "-C", unpacked, *packed,
                    timeout=600, next_step=f"replace {archive}, or unset {CACHE_VARIABLE}",
                )  # fmt: skip
            taken = [program for program in takeable if _take(ctx, program, folder, unpacked, sums)]
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    return [program for program in programs if program not in taken]


def _take(ctx: Context, program: Program, folder: Path, unpacked: Path, sums: Mapping[str, str]) -> bool:
    file = folder / program.name
    if not file.is_file():
        file = unpacked / program.name
    if not file.is_file():
        return False
    check_file(file, sums[program.name], str(folder))
    version = built_from(ctx.sh.run(_go(), "version", "-m", file).out).get(program.module.path)
    if version != program.module.version:
        ctx.progress.say(f"{program.name}: the cache has {version}, {program.module.version} is wanted")
        return False
    _keep(ctx, program, file)
    return True


def _keep(ctx: Context, program: Program, file: Path) -> None:
    place = _place(ctx, program)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(place.name + ".new")
    shutil.copy(file, draft)
    draft.chmod(0o755)
    draft.replace(place)
    write_json(_sums(ctx), {**read_json(_sums(ctx)), _key(ctx, program): sha256(place)})


def _build(ctx: Context, program: Program) -> None:
    module = program.module
    source = module_folder(ctx, module)
    if module.wrapper:
        # Built from a copy, so that nothing ever writes into the checkout.
        source = _neutral(ctx) / module.wrapper
        shutil.copytree(_GOMOD / module.wrapper, source, dirs_exist_ok=True)
    output = _neutral(ctx) / f"{program.name}.built"
    env = {**go_env(ctx), **({} if program.on_host else {"GOOS": "linux", "GOARCH": ctx.host.arch})}
    ctx.sh.run(
        _go(), "build", "-mod=readonly", "-trimpath", "-ldflags", link_flags(module), "-o", output, program.package,
        cwd=source, env=env, timeout=_BUILD_SECONDS, next_step="see the messages of the Go compiler above; a Go that"
        " is too old says so there. Programs that are built already are kept",
    )  # fmt: skip
    _keep(ctx, program, output)
    output.unlink()


def _go() -> str:
    found = shutil.which("go")
    if not found:
        raise ClusterError(
            "there is no Go here; kind and the manifests of the stack come from Go modules", "install Go 1.26 or newer"
        )
    return found


def _neutral(ctx: Context) -> Path:
    """A folder outside any Go module."""
    folder = ctx.home / "build"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _key(ctx: Context, program: Program) -> str:
    return f"{program.key}-{'host' if program.on_host else ctx.host.arch}"


def _place(ctx: Context, program: Program) -> Path:
    return ctx.home / "bin" / _key(ctx, program) / program.name


def _sums(ctx: Context) -> Path:
    return ctx.home / "bin" / "checksums.json"
