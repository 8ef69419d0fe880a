"""`python -m trainjob` is the `trainjob` script."""

from trainjob.cli import main

main()
