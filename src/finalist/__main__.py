"""`python -m finalist` is the command `finalist`."""

from finalist.cli import main

if __name__ == "__main__":
    main()
