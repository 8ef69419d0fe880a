"""The training image: torch, transformers, peft and s3fs for CPUs, with their bytecode compiled.

The torch that package indexes serve for Linux is built for CUDA. It runs on CPUs; what only a GPU would
use is removed. An index of CPU builds gives a smaller image: TRAINJOB_TORCH_INDEX names it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from . import container, engine
from .container import Build
from .context import Context
from .host import require_disk
from .images import Source

# The name that the overlays for clusters without GPUs write.
IMAGE: Final = "localhost/trainjob-cpu-stand-in:1"
INDEX_VARIABLE: Final = "TRAINJOB_TORCH_INDEX"
_REQUIREMENTS: Final = Path(__file__).with_name("training-requirements.txt")
_UV: Final = "uv==0.13.9"
_PACKAGES: Final = ("python3", "python3-venv", "libgomp1", "procps", "iproute2")
# torch loads these at import, GPU or not.
_LIBRARIES: Final = (
    "cublas", "cublasLt", "cufft", "nccl", "cusparse", "cusparseLt", "cusolver", "nvJitLink", "nvrtc",
    "nvrtc-builtins", "nvshmem_host", "cupti", "cufile", "cudart", "cudnn", "curand",
)  # fmt: skip
# bin/torch_shm_manager has to stay: `import torch` fails without it.
_PRUNE: Final = """
cd /opt/venv/lib/python3*/site-packages
rm -rf triton cuda torch/test torch/include
if [ -d nvidia ]; then
    find nvidia -name '*.so*' | while read -r file; do
        name=${file##*/lib} name=${name%%.*}
        case " $KEEP " in *" $name "*) ;; *) rm -f "$file" ;; esac
    done
    find nvidia \\( -name include -o -name '*.a' -o -name bin -o -name nvvm \\) -prune -exec rm -rf {} +
fi
"""
_CHECK: Final = """
/opt/venv/bin/python -c '
import torch, torch.distributed, transformers, peft, s3fs
from torch.distributed.fsdp import fully_shard
assert torch.distributed.is_gloo_available()
print(torch.__version__, transformers.__version__, peft.__version__)'
"""


def ensure(ctx: Context, source: Source) -> str:
    """Makes the image if there is none of this recipe; returns its name."""
    index = os.environ.get(INDEX_VARIABLE, "")
    recipe = container.recipe(
        _REQUIREMENTS.read_text(), _PACKAGES, _LIBRARIES, _PRUNE, _UV, index, ctx.host.arch, _USER, sorted(_ENV.items())
    )  # fmt: skip
    if container.has(ctx, IMAGE, recipe):
        return IMAGE
    require_disk(engine.data_folder(ctx))
    debian = source.debian()
    with ctx.progress.step("training image"), Build(ctx, debian) as build:
        with ctx.progress.step("Debian packages of the training image"):
            build.install(*_PACKAGES)
            build.run("useradd --uid 1000 --create-home trainer; python3 -m venv /opt/venv")
        with ctx.progress.step("Python packages of the training image"):
            env = build.trust_host()
            build.run(f"python3 -m venv /tmp/uv && /tmp/uv/bin/pip install --no-cache-dir {_UV}", env, hint=_HINT)
            build.write("/tmp/requirements.txt", requirements(_REQUIREMENTS.read_text(), cpu_builds=bool(index)))
            extra = f"--extra-index-url {index} --index-strategy unsafe-best-match" if index else ""
            build.run(
                "/tmp/uv/bin/uv pip install --no-cache --python /opt/venv/bin/python"
                f" {extra} --requirement /tmp/requirements.txt",
                {**env, "UV_HTTP_TIMEOUT": "300", "UV_CONCURRENT_DOWNLOADS": "4"},
                timeout=2400,
                hint=_HINT,
            )
        with ctx.progress.step("remove what only GPUs need, compile the bytecode"):
            build.run(_PRUNE, {"KEEP": " ".join(_LIBRARIES)})
            # By the content, not the time, of the source: so it stays valid whatever touches the files.
            build.run(
                "/opt/venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/venv/lib"
                " || true; rm -rf /tmp/uv /tmp/requirements.txt /root/.cache",
                timeout=1200,
            )
            build.forget_host()
        with ctx.progress.step("try the training image"):
            build.run(_CHECK, timeout=300)
        with ctx.progress.step("commit the training image"):
            build.commit(IMAGE, container.changes(recipe, env=_ENV, user=_USER, workdir="/workspace"))
    return IMAGE


def requirements(text: str, cpu_builds: bool) -> str:
    """The packages to install. A CPU build of torch needs none of the CUDA libraries."""
    if not cpu_builds:
        return text
    cuda = ("nvidia-", "cuda-", "triton")
    lines = [line for line in text.splitlines() if not line.startswith(cuda)]
    return "\n".join(f"{line}+cpu" if line.startswith("torch==") else line for line in lines) + "\n"


_USER: Final = "1000:1000"
# Any user may run it, also one that the image does not know: a home and a name that exist everywhere.
_ENV: Final = {
    "PATH": "/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",
    "USER": "trainer",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_HINT: Final = "see that this machine reaches its Python package index, then run the same command again"
