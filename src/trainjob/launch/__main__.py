"""`python -m trainjob.launch`: see the package's docstring."""

from __future__ import annotations

import sys

from trainjob.launch.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
