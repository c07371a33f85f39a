"""Exit codes of the program."""

#: Success; for `tell` and `status`: the study has ended.
DONE = 0
#: Wrong input or a damaged database; click uses the same code for a wrong option.
WRONG = 2
#: The study continues.
CONTINUE = 10
#: Ctrl-C.
INTERRUPTED = 130

EPILOG = f"""Exit codes: {DONE} done; {CONTINUE} the study goes on (tell, status, and ask while
all measurements are with other workers); {WRONG} wrong input, explained in one line on stderr that
starts with 'Error:' (wrong files with line and column); 1 anything unexpected."""


def of_verdict(verdict: str) -> int:
    """Return the exit code for a verdict: 10 while the study continues, 0 when it has ended."""
    return CONTINUE if verdict == "continue" else DONE
