"""How large a core install is: the wheel and its dependencies in a fresh environment, without pip.

python bench/install_size.py      needs the package index; exit code 1 if the target is missed
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_MB = 25


def megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    return sum(f.stat().st_size for f in files) / 1e6


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build = [sys.executable, "-m", "build", "--quiet", "--no-isolation", "--wheel", "--outdir", name, str(ROOT)]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        (wheel,) = folder.glob("*.whl")
        venv.EnvBuilder(with_pip=False, symlinks=True).create(folder / "venv")
        python = folder / "venv" / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
        # What a first run compiles is there already: pip has done it.
        subprocess.run([python, "-m", "trainjob", "--help"], check=True, stdout=subprocess.DEVNULL)
        (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
        sizes = sorted(((megabytes(entry), entry.name) for entry in site.iterdir()), reverse=True)
        total = sum(size for size, _ in sizes)
        for size, entry in sizes:
            if size >= 0.05:
                print(f"  {size:6.2f} MB  {entry}")
        print(f"  {total:6.2f} MB  together, as a wheel {megabytes(wheel):.2f} MB; target < {MAX_MB} MB")
    return 0 if total < MAX_MB else 1


if __name__ == "__main__":
    sys.exit(main())
