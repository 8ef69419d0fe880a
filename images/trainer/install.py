"""Fills /opt/venv while the image is built; the Containerfile calls it. Needs Python's standard library alone.

`libraries` installs the pinned packages, removes what a form of the image does not need, compiles the
bytecode and sorts the result into /layers/*; `tools` and `trainjob` do the same for trainjob's own wheel.
"""

from __future__ import annotations

import argparse
import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

BUILD: Final = Path("/build")
VENV: Final = Path("/opt/venv")
TOOLS: Final = Path("/opt/tools")
LAYERS: Final = Path("/layers")
SOURCE: Final = Path("/source")

# What torch 2.13 opens when it is imported, GPU or not.
OPENED_AT_IMPORT: Final = {
    "cublas", "cublasLt", "cufft", "nccl", "cusparse", "cusparseLt", "cusolver", "nvJitLink", "nvrtc",
    "nvrtc-builtins", "nvshmem_host", "cupti", "cufile", "cudart", "cudnn", "curand",
}  # fmt: skip
# For CPUs torch/include goes too: there is no compiler. torch/bin stays: the import looks for torch_shm_manager.
_GPU_ONLY: Final = ("triton", "cuda", "torch/include")
_NEVER: Final = ("torch/test",)
# Parts of the packages by layer; what is in none goes to `rest`.
_LAYERS: Final = {
    "nvidia": ("nvidia",),
    "torch": ("torch", "torchgen", "functorch", "triton", "cuda", "bitsandbytes"),
}
_CUDA_PACKAGES: Final = ("nvidia-", "cuda-", "triton")
_ENTRY: Final = re.compile(r"^(?=\S)", re.MULTILINE)


class BuildError(Exception):
    """The image cannot be built as asked."""


def split(requirements: str) -> dict[str, str]:
    """The entries of a requirements file with hashes, by package: each with its lines."""
    entries = [entry for entry in _ENTRY.split(requirements) if entry.strip() and not entry.startswith("#")]
    return {re.split(r"[=<>~!\[ ;]", entry, maxsplit=1)[0]: entry for entry in entries}


def without_cuda(requirements: str) -> tuple[str, str]:
    """What an index of CPU builds leaves to install: torch as that index names it, and the other packages."""
    entries = split(requirements)
    match = re.match(r"torch==(\S+)", entries.pop("torch", ""))
    if not match:
        raise BuildError("requirements.txt does not pin torch: write it again with `uv pip compile`, see README.md")
    rest = [text for name, text in entries.items() if not name.startswith(_CUDA_PACKAGES)]
    return f"torch=={match[1]}+cpu", "".join(rest)


def prune(site: Path, form: str) -> None:
    """Removes from site-packages what a form of the image never uses."""
    if form not in {"cpu", "cuda"}:
        raise BuildError(f"there is no form {form!r}: write cpu or cuda")
    for name in (*_NEVER, *(_GPU_ONLY if form == "cpu" else ())):
        shutil.rmtree(site / name, ignore_errors=True)
    # Built for each CUDA, ROCm and XPU; torch is of one CUDA.
    kept = {"cpu", *({f"cuda{_cuda(site)}"} if form == "cuda" else ())}
    for library in (site / "bitsandbytes").glob("libbitsandbytes_*.so"):
        if library.stem.removeprefix("libbitsandbytes_") not in kept:
            library.unlink()
    if form == "cpu":
        _prune_nvidia(site / "nvidia")


def layers(venv: Path, target: Path) -> None:
    """Moves an environment into one folder a layer."""
    for path in sorted(venv.glob("lib/python3*/site-packages/*")):
        layer = next((layer for layer, names in _LAYERS.items() if path.name in names), "")
        if layer:
            place = target / layer / path.relative_to(venv)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.rename(place)
    # A layer may be empty, COPY needs the folder.
    for layer in _LAYERS:
        (target / layer).mkdir(parents=True, exist_ok=True)
    venv.rename(target / "rest")


def compile_bytecode(folder: Path) -> None:
    """Compiles each module. The files hold no time stamp: whatever a builder does to times, they stay valid."""
    compileall.compile_dir(
        folder, quiet=2, workers=0, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )  # fmt: skip


def added(folder: Path, before: Iterable[Path], target: Path) -> None:
    """Copies the files that were not there before, under the same names."""
    for file in sorted(set(_files(folder)) - set(before)):
        place = target / file.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place, follow_symlinks=False)


def main(argv: Sequence[str]) -> int:
    """Runs one of the three steps; 1 with a reason when it cannot be done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("libraries", "tools", "trainjob"))
    parser.add_argument("--form", default="cpu")
    parser.add_argument("--index", default="")
    parser.add_argument("--torch-index", default="")
    args = parser.parse_args(argv)
    try:
        if args.step == "libraries":
            _libraries(args.form, args.index, args.torch_index)
        elif args.step == "tools":
            _tools(args.index)
        else:
            _trainjob()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"error: `{Path(error.cmd[0]).name} {error.cmd[1]}` failed (exit {error.returncode})", file=sys.stderr)
        print(
            "Next: see the lines above. A package index that does not answer: give INDEX; a certificate that is not"
            " trusted: put it into images/trainer/certificates",
            file=sys.stderr,
        )
        return 1
    return 0


def _libraries(form: str, index: str, torch_index: str) -> None:
    if torch_index and form != "cpu":
        raise BuildError("TORCH_INDEX is for FORM=cpu: leave it out, the package index has torch for CUDA")
    _tools(index)
    _run(sys.executable, "-m", "venv", "--without-pip", VENV)
    wanted = (BUILD / "requirements.txt").read_text()
    if torch_index:
        torch, wanted = without_cuda(wanted)
        _uv("install", "--no-deps", "--default-index", torch_index, torch)
    selected = BUILD / "selected.txt"
    selected.write_text(wanted)
    _uv("install", "--no-deps", "--require-hashes", *_index(index), "--requirement", selected)
    _uv("check")
    for site in VENV.glob("lib/python3*/site-packages"):
        prune(site, form)
    # uv's own, writable for everybody.
    (VENV / ".lock").unlink(missing_ok=True)
    compile_bytecode(VENV / "lib")
    layers(VENV, LAYERS)


def _tools(index: str) -> None:
    """uv, and hatchling to build the wheel, in an environment that does not get into the image."""
    if TOOLS.exists():
        return
    _run(sys.executable, "-m", "venv", TOOLS)
    pip = (TOOLS / "bin" / "python", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--quiet")
    where = ("--index-url", index) if index else ()
    _run(*pip, "--require-hashes", *where, "--requirement", BUILD / "build-requirements.txt")


def _trainjob() -> None:
    before = list(_files(VENV))
    wheels = BUILD / "wheels"
    _run(
        TOOLS / "bin" / "python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet",
        "--disable-pip-version-check", "--wheel-dir", wheels, SOURCE,
    )  # fmt: skip
    _uv("install", "--no-deps", "--offline", *wheels.glob("*.whl"))
    _uv("check")
    for package in VENV.glob("lib/python3*/site-packages/trainjob"):
        compile_bytecode(package)
    (VENV / ".lock").unlink(missing_ok=True)
    added(VENV, before, LAYERS / "trainjob")


def _uv(command: str, *words: str | Path) -> None:
    _run(TOOLS / "bin" / "uv", "pip", command, "--no-cache", "--python", VENV / "bin" / "python", *words)


def _index(index: str) -> tuple[str, ...]:
    return ("--default-index", index) if index else ()


def _run(*words: str | Path) -> None:
    env = {**os.environ, "UV_HTTP_TIMEOUT": "300", "UV_CONCURRENT_DOWNLOADS": "4", "UV_LINK_MODE": "copy"}
    given = sorted((BUILD / "certificates").glob("*.crt"))
    if given:
        # Beside those of Debian, in one file: the programs know one variable each.
        bundle = Path("/tmp/certificates.crt")
        known = Path("/etc/ssl/certs/ca-certificates.crt")
        bundle.write_text("\n".join(file.read_text() for file in (known, *given)))
        env |= {"SSL_CERT_FILE": str(bundle), "PIP_CERT": str(bundle)}
    subprocess.run([str(word) for word in words], env=env, check=True)


def _prune_nvidia(folder: Path) -> None:
    for library in folder.rglob("*.so*"):
        if library.name.removeprefix("lib").split(".")[0] not in OPENED_AT_IMPORT:
            library.unlink()
    for path in [*folder.rglob("include"), *folder.rglob("bin"), *folder.rglob("nvvm")]:
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.rglob("*.a"):
        path.unlink()


def _cuda(site: Path) -> str:
    """The CUDA of this torch as bitsandbytes writes it: 130 for 13.0."""
    text = (site / "torch" / "version.py").read_text()
    match = re.search(r"^cuda(?:: [^=]*)? = ['\"](\d+)\.(\d+)", text, re.MULTILINE)
    if not match:
        raise BuildError("this torch is not built for CUDA: FORM=cuda needs one that is")
    return match[1] + match[2]


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
