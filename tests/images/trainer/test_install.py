"""What gets into the training image, and what is left out."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from images.trainer import install

ENTRIES = """\
# Written by a program
numpy==1 \\
    --hash=sha256:aa \\
    --hash=sha256:ab
nvidia-cublas==2 \\
    --hash=sha256:ba
cuda-bindings==3 \\
    --hash=sha256:ca
torch==4.1.0 \\
    --hash=sha256:da
triton==5 \\
    --hash=sha256:ea
"""


def tree(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def there(root: Path) -> set[str]:
    return {file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file()}


def test_an_entry_keeps_its_hashes() -> None:
    entries = install.split(ENTRIES)
    assert list(entries) == ["numpy", "nvidia-cublas", "cuda-bindings", "torch", "triton"]
    assert entries["numpy"] == "numpy==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:ab\n"
    assert list(install.split("a[b]>=1\n")) == ["a"]


def test_a_cpu_build_of_torch_needs_no_cuda_libraries() -> None:
    torch, rest = install.without_cuda(ENTRIES)
    assert torch == "torch==4.1.0+cpu"
    assert rest == "numpy==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:ab\n"


def test_requirements_without_torch_are_refused() -> None:
    with pytest.raises(install.BuildError, match="does not pin torch"):
        install.without_cuda("numpy==1\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    tree(
        tmp_path,
        "torch/__init__.py", "torch/test/t.py", "torch/include/a.h", "torch/bin/torch_shm_manager", "triton/a.py",
        "cuda/a.py", "nvidia/cu13/lib/libcublas.so.13", "nvidia/cu13/lib/libnvblas.so.13",
        "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cudnn/lib/libcudnn_ops.so.9", "nvidia/cu13/include/a.h",
        "nvidia/cu13/lib/libx.a", "nvidia/nccl/lib/libnccl.so.2",
        *(f"bitsandbytes/libbitsandbytes_{kind}.so" for kind in ("cpu", "cuda128", "cuda130", "rocm71")),
    )  # fmt: skip
    (tmp_path / "torch" / "version.py").write_text("__version__ = '4'\ncuda: Optional[str] = '13.0'\n")
    return tmp_path


def test_for_cpus_what_only_a_gpu_uses_goes(site: Path) -> None:
    install.prune(site, "cpu")
    assert there(site) == {
        "torch/__init__.py", "torch/version.py", "torch/bin/torch_shm_manager", "nvidia/cu13/lib/libcublas.so.13",
        "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/nccl/lib/libnccl.so.2", "bitsandbytes/libbitsandbytes_cpu.so",
    }  # fmt: skip


def test_for_gpus_only_other_gpus_libraries_and_tests_go(site: Path) -> None:
    before = there(site)
    install.prune(site, "cuda")
    assert before - there(site) == {
        "torch/test/t.py", "bitsandbytes/libbitsandbytes_cuda128.so", "bitsandbytes/libbitsandbytes_rocm71.so",
    }  # fmt: skip


def test_a_torch_without_cuda_is_no_cuda_form(site: Path) -> None:
    (site / "torch" / "version.py").write_text("cuda: Optional[str] = None\n")
    with pytest.raises(install.BuildError, match="not built for CUDA"):
        install.prune(site, "cuda")


def test_another_form_is_refused(site: Path) -> None:
    with pytest.raises(install.BuildError, match="write cpu or cuda"):
        install.prune(site, "rocm")


def test_every_file_is_in_one_layer(tmp_path: Path) -> None:
    packages = "lib/python3.13/site-packages"
    names = {
        "bin/python": "rest",
        f"{packages}/nvidia/nccl/lib/libnccl.so.2": "nvidia",
        f"{packages}/torch/__init__.py": "torch",
        f"{packages}/torch-4.dist-info/RECORD": "rest",
        f"{packages}/transformers/__init__.py": "rest",
    }
    venv, target = tree(tmp_path / "venv", *names), tmp_path / "layers"
    install.layers(venv, target)
    assert there(target) == {f"{layer}/{name}" for name, layer in names.items()}


def test_a_layer_without_files_is_an_empty_folder(tmp_path: Path) -> None:
    install.layers(tree(tmp_path / "venv", "bin/python"), tmp_path / "layers")
    assert [folder.name for folder in sorted((tmp_path / "layers").iterdir())] == ["nvidia", "rest", "torch"]


def test_bytecode_is_valid_whatever_the_time_of_its_source(tmp_path: Path) -> None:
    source = tmp_path / "fine.py"
    source.write_text("x = 1\n")
    (tmp_path / "template.py").write_text("a module of Python 2, or no module at all\n")
    install.compile_bytecode(tmp_path)
    compiled = Path(importlib.util.cache_from_source(str(source)))
    assert compiled.read_bytes()[4:8] == b"\1\0\0\0"
    assert len(list(compiled.parent.iterdir())) == 1


def test_only_what_is_new_is_added(tmp_path: Path) -> None:
    venv = tree(tmp_path / "venv", "bin/python", "lib/old.py")
    before = [file for file in venv.rglob("*") if file.is_file()]
    tree(venv, "lib/new/__init__.py")
    (venv / "bin" / "link").symlink_to("python")
    install.added(venv, before, tmp_path / "out")
    assert there(tmp_path / "out") == {"lib/new/__init__.py"}
    assert (tmp_path / "out" / "bin" / "link").is_symlink()


def test_an_index_of_cpu_builds_does_not_go_with_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main(["libraries", "--form", "cuda", "--torch-index", "https://example.com/cpu"]) == 1
    assert capsys.readouterr().err.startswith("error: TORCH_INDEX is for FORM=cpu")
