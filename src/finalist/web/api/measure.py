"""The API: ask for pulls, tell their rewards, correct single pulls."""

import io
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from finalist.errors import RewardError
from finalist.study import Batch, Pull, Study, handles
from finalist.study.checks import promised, risk_of
from finalist.study.measure import Told
from finalist.study.results import OwnColumns, Results, pulls_workbook, results_of, write_pulls
from finalist.tables import Cells
from finalist.web.api.answers import (
    BatchAnswer,
    PullAnswer,
    TakenBackAnswer,
    ToldAnswer,
    WordsAnswer,
)
from finalist.web.api.bodies import AmendBody, AskBody, ReasonBody, Result, TellBody, UndoBody
from finalist.web.depends import (
    CSV_BODY,
    SHEET_BODY,
    XLSX,
    Csv,
    DecimalMark,
    DialectDep,
    IssuerDep,
    Key,
    Number,
    OwnToo,
    PullNumber,
    Sheet,
    SnapshotsDep,
    StudiesDep,
)
from finalist.web.errors import Json
from finalist.web.strict import StrictRoute
from finalist.web.uploads import tell_table

router = APIRouter(route_class=StrictRoute, tags=["measuring"])


@router.post("/studies/{number}/ask", response_model=BatchAnswer)
def ask(number: Number, body: AskBody, issuer: IssuerDep) -> Json:
    """Return what to measure next; the same pulls are returned until they are told."""
    return Json(batch_answer(issuer.ask(number, body.size, body.worker)))


def batch_answer(batch: Batch) -> dict[str, Any]:
    """Return a batch as plain values."""
    plain = {word: value for word, value in vars(batch).items() if word != "arms"}
    return plain | {"pulls": [vars(pull) for pull in batch], "reason": batch.reason}


@router.get("/studies/{number}/open", response_model=BatchAnswer)
def open_pulls(number: Number, snapshots: SnapshotsDep) -> Json:
    """Return the pulls without rewards; unlike `ask`, this issues none."""
    return Json(batch_answer(snapshots.open_batch(number)))


@router.get("/studies/{number}/open.csv", response_class=Response)
def open_csv(
    number: Number, snapshots: SnapshotsDep, decimal: DecimalMark = ".", columns: OwnToo = True
) -> Response:
    """Return the pulls without rewards, as a table to fill in."""
    batch = snapshots.open_batch(number)
    text = io.StringIO(newline="")
    write_pulls(text, batch.rows(), _own(batch, columns), decimal=decimal)
    return csv_answer(text.getvalue(), f"study-{number}-batch.csv")


@router.get("/studies/{number}/open.xlsx", response_class=Response)
def open_xlsx(number: Number, snapshots: SnapshotsDep, columns: OwnToo = True) -> Response:
    """Return the pulls without rewards, as a workbook to fill in."""
    batch = snapshots.open_batch(number)
    content = pulls_workbook(batch.rows(), _own(batch, columns))
    return _download(content, XLSX, f"study-{number}-batch.xlsx")


def _own(batch: Batch, wanted: bool) -> OwnColumns | None:
    return batch.own_columns() if wanted else None


def csv_answer(text: str, name: str) -> Response:
    """Return CSV as a download."""
    content = text.encode("utf-8", "backslashreplace")
    return _download(content, "text/csv; charset=utf-8", name)


def _download(content: bytes, kind: str, name: str) -> Response:
    """Return a file as a download; `name` is ours and needs no quoting."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)


@router.post("/studies/{number}/tell", response_model=ToldAnswer)
def tell(number: Number, body: TellBody, studies: StudiesDep, key: Key) -> Json:
    """Store rewards: all of them, or none on an error; "failed" has a pull measured again."""
    results = _results_of(body.results)
    with studies.writing(number) as study:
        return Json(told(study, handles.tell(study, results, key)))


def _teller(
    number: Number, studies: StudiesDep, key: Key, dialect: DialectDep
) -> Callable[[bytes], Json]:
    def tell(table: bytes) -> Json:
        with studies.writing(number) as study:
            return Json(told(study, tell_table(study, table, key, dialect)))

    return tell


Teller = Annotated[Callable[[bytes], Json], Depends(_teller)]


@router.post("/studies/{number}/tell.csv", response_model=ToldAnswer, openapi_extra=CSV_BODY)
def tell_csv(table: Csv, tell: Teller) -> Json:
    """Store the results of a table as issued, filled in."""
    return tell(table)


@router.post("/studies/{number}/tell.xlsx", response_model=ToldAnswer, openapi_extra=SHEET_BODY)
def tell_xlsx(table: Sheet, tell: Teller) -> Json:
    """Store the results of a workbook (.xlsx, .ods) as issued, filled in."""
    return tell(table)


def _results_of(rows: list[Result]) -> Results:
    """Return results of the API as those of a table: its notes are further columns."""
    columns: dict[str, list[Any]] = {
        word: [getattr(row, word) for row in rows] for word in ("pull_id", "reward", "arm")
    }
    further = dict.fromkeys(key for row in rows for key in row.notes or ())
    taken = sorted(set(columns) & set(further))
    if taken:
        raise RewardError(f"a note is called {taken[0]!r}, which is a reserved name. Rename it.")
    columns |= {key: [(row.notes or {}).get(key) for row in rows] for key in further}
    cells = tuple(tuple(column) for column in columns.values())
    return results_of(Cells(tuple(columns), cells, range(1, len(rows) + 1)))


def told(study: Study, result: Told) -> dict[str, Any]:
    """Return the response to a tell; a repeated call gets that of the first one."""
    state, (new, again) = result.state, result.repeated or (result.new, result.again)
    ended = None if state.end is None else study.status(forecast=False)
    return {
        "new": new,
        "again": again,
        "repeated": result.repeated is not None,
        "verdict": "continue" if ended is None else ended.verdict,
        "certain": promised(state),
        "winner": None if ended is None else ended.winner,
        "risk": risk_of(state),
    }


@router.post("/studies/{number}/pulls/{pull}/void", response_model=PullAnswer)
def void(number: Number, pull: PullNumber, body: ReasonBody, studies: StudiesDep) -> Json:
    """Give up a measurement that failed; the answer is the pull that replaces it."""
    with studies.writing(number) as study:
        replaced: Pull = study.void(pull, body.reason)
        return Json(vars(replaced))


@router.post("/studies/{number}/pulls/{pull}/missing", response_model=WordsAnswer)
def missing(number: Number, pull: PullNumber, body: ReasonBody, studies: StudiesDep) -> Json:
    """Continue without a measurement, of an arm that cannot be measured again."""
    with studies.writing(number) as study:
        study.missing(pull, body.reason)
    return Json({"words": f"Pull {pull} is missing."})


@router.post("/studies/{number}/pulls/{pull}/amend", response_model=WordsAnswer)
def amend(number: Number, pull: PullNumber, body: AmendBody, studies: StudiesDep) -> Json:
    """Correct a wrong reward, as long as no decision has used it."""
    with studies.writing(number) as study:
        study.amend(pull, body.reward, body.reason)
    return Json({"words": f"The reward of pull {pull} is amended."})


@router.post("/studies/{number}/undo", response_model=TakenBackAnswer)
def undo(number: Number, body: UndoBody, studies: StudiesDep) -> Json:
    """Take back the rewards that were told last, as long as no decision has used them."""
    with studies.writing(number) as study:
        taken = study.undo(body.event)
        return Json({"results": handles.named(study, taken)})
