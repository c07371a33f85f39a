"""Compile every loop once, before several processes need them at once: `make test` does.

    python -m tests.warm

What is missing here is compiled by the test that needs it first.
"""

from finalist.lab.warmup import warm_up

if __name__ == "__main__":
    warm_up()
