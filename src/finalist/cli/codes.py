"""Exit codes of the program, in one place."""

#: The command did its job; for `tell` and `status`: the study has ended.
DONE = 0
#: Wrong input, or a database that is damaged; click has the same for a wrong option.
WRONG = 2
#: The study goes on.
CONTINUE = 10
#: Ctrl-C.
INTERRUPTED = 130

EPILOG = f"""Exit codes: {DONE} done; {CONTINUE} the study goes on (tell, status, and ask while
every pull is with other workers); {WRONG} wrong input, explained in one line on stderr that starts
with 'Error:' (wrong files with line and column); 1 anything unexpected."""


def of_verdict(verdict: str) -> int:
    """Return the code of a study: 10 while it goes on, 0 when it has ended."""
    return CONTINUE if verdict == "continue" else DONE
