"""What a page says about the last action."""

from fastapi import Request
from fastapi.responses import RedirectResponse

#: Messages after an action; `n` is a number.
SAID = {
    "created": "The study is created. Get the first batch below.",
    "issued": "A new batch is ready: measure it in this order.",
    "stored": "{n} new results are stored.",
    "stored-one": "1 new result is stored.",
    "failed": "{n} measurements failed. They are made again, below under new numbers.",
    "failed-one": "1 measurement failed. It is made again, below under a new number.",
    "undone": "{n} results are taken back. Their measurements are open again, below.",
    "undone-one": "1 result is taken back. Its measurement is open again, below.",
    "same": "Nothing is new: these results were stored already.",
    "void": "Measurement {n} replaces the one that failed.",
    "missing": "Measurement {n} is given up.",
    "amended": "The result of measurement {n} is corrected.",
    "noted": "The note is in the history.",
    "stopped": "The study is stopped. You can resume it at any time.",
    "resumed": "The study goes on.",
    "rebudgeted": "The budget is changed. What is measured next is planned for it; what is certain "
    "stays certain.",
    "forked": "This is the new study. Enter the results of its open batch again.",
    "remodelled": "This is the new study, with fresh evidence. Its assumptions say what the "
    "probabilities of error of the two studies add up to.",
    "withdrawn": "The candidate is withdrawn. All that are left are tested anew.",
    "added": "{n} new candidates are tested from here on.",
    "added-one": "The new candidate is tested from here on.",
    "example": "The example is ready. Simulate its first batch below.",
    "simulated": "{n} results were simulated. The verdict has changed with them.",
    "used": "Batch {n} is complete and a decision has used its results. If one of them is wrong, "
    "start the study anew from before batch {n}, under “Change the study”.",
    "deleted": "The study is deleted.",
}


def said(request: Request) -> str | None:
    """Return the message of the last action; the URL holds a key and numbers, never a text."""
    query = request.query_params
    first = _message(query.get("said", ""), query.get("n", ""))
    again = query.get("again", "")
    more = _message("failed-one" if again == "1" else "failed", again) if again else None
    used = _message("used", query.get("used", ""))
    return " ".join(filter(None, (first, more, used))) or None


def _message(word: str, number: str) -> str | None:
    words_ = SAID.get(word)
    if words_ is None or not (number.isascii() and number.isdigit() and len(number) < 12):
        return words_ if words_ is not None and "{n}" not in words_ else None
    return words_.format(n=f"{int(number):,}")


def back(
    number: int,
    word: str,
    n: int | None = None,
    part: str = "#main",
    *,
    again: int = 0,
    used: int = 0,
) -> RedirectResponse:
    """Redirect to the page of a study, with the message of an action.

    `again` counts failed measurements; `used` is the batch whose results a decision has used.

    Without a fragment the browser would keep that of the form, but messages are at the top.
    """
    query = f"said={word}" + ("" if n is None else f"&n={n}") + (f"&again={again}" if again else "")
    query += f"&used={used}" if used else ""
    return RedirectResponse(f"/studies/{number}?{query}{part}", status_code=303)
