"""`python -m finalist` is the command `finalist`."""

from finalist.cli import main

main()
