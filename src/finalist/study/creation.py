"""What the arguments of `Study.create` mean, and whether those of `Study.open` agree."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any, Unpack

import numpy as np

from finalist import __version__
from finalist.arms import Arms
from finalist.errors import StudyError
from finalist.inference.statistics import BatchResults
from finalist.problem import Problem, study_problem
from finalist.problem.noise import NOISES, takes_sigma
from finalist.settings import ProblemWords
from finalist.strategies import Strategy, named
from finalist.study.history import event_body
from finalist.study.replay import Replay
from finalist.study.results import Results
from finalist.study.rules import check_name
from finalist.study.settings import Settings, difference, from_json, with_roles
from finalist.study.storage.database import Database
from finalist.study.storage.reader import Reader
from finalist.study.storage.rows import StudyRow
from finalist.study.storage.writer import Writer
from finalist.study.tables import arms_table, given_body, read_arms

#: Arguments of `create` that the settings keep under another name.
_STORED = {"sigma": "noise"}


def settings_of(
    arms: Arms | Problem,
    strategy: Strategy | str = "gauntlet",
    *,
    seed: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    **words: Unpack[ProblemWords],
) -> Settings:
    """Return what the arguments of `create` mean; refuse what the strategy cannot do."""
    problem = study_problem(arms, **words)
    chosen = named(strategy, problem.arms) if isinstance(strategy, str) else strategy
    drawn = secrets.randbits(53) if seed is None else seed
    settings = Settings(problem, chosen, drawn, {} if metadata is None else metadata)
    chosen.start(problem, seed=drawn)
    return settings


def create(
    where: str | PathLike[str], name: str, settings: Settings, history: Results | None = None
) -> tuple[Database, StudyRow]:
    """Write down a study that begins, with its arms and what was measured before: all or nothing.

    A history that cannot be used is refused before a database is created.
    """
    check_name(name)
    before = None if history is None else usable(settings, history)
    with _opened(where, create=True) as database, database.write() as writer:
        return database, begin(writer, name, settings, before)


def begin(
    writer: Writer,
    name: str,
    settings: Settings,
    history: dict[str, Any] | None = None,
    origin: Mapping[str, Any] | None = None,
) -> StudyRow:
    """Write down within a transaction what begins a study.

    `history` is the body of its event, and `origin` says which study it comes from.
    """
    number = writer.create(name, settings.to_json(), __version__)
    writer.add_arms(number, 0, *arms_table(settings.problem.arms))
    body = {"version": __version__, "given": given_body(settings.problem.arms)}
    writer.append(number, 1, "created", {**body, **(origin or {})})
    if history is not None:
        writer.append(number, 2, "history", history)
    return writer.study(name)


def usable(settings: Settings, history: Results) -> dict[str, Any]:
    """Return the body of the event with a history; refuse what the strategy cannot use."""
    problem = settings.problem
    body = event_body(problem, history)
    before = BatchResults.of(len(problem.arms), np.array(body["arms"]), history.value)
    Replay(settings.strategy.start(problem, seed=settings.seed)).inform(before)
    return body


def reopen(
    where: str | PathLike[str], name: str, arms: Arms | None, given: dict[str, Any]
) -> tuple[Database, StudyRow]:
    """Find a study; refuse arms or arguments of `create` that are not those of the study."""
    with _opened(where) as database, database.read() as reader:
        row = reader.study(name)
        _check_same(row, reader, arms, given)
        return database, row


@contextmanager
def _opened(where: str | PathLike[str], *, create: bool = False) -> Iterator[Database]:
    """Open a database, and close it again after an error."""
    database = Database.open(where, create=create)
    try:
        yield database
    except BaseException:
        database.close()
        raise


def _check_same(row: StudyRow, reader: Reader, arms: Arms | None, given: dict[str, Any]) -> None:
    """Refuse arms or arguments of `create` that are not those of the study."""
    if arms is None and not given:
        return
    settings, name = row.settings, row.name
    stored = with_roles(read_arms(reader, row.id, 0), settings)
    words = {word: value for word, value in given.items() if word != "seed" or value is not None}
    candidates = words.pop("candidates", None)
    if arms is not None and _joined(arms, candidates) != stored:
        raise StudyError(
            f"study {name!r} was created with other arms; leave `arms` out to go on with those, "
            "or create a study of another name."
        )
    if arms is None and candidates is not None:
        raise StudyError("candidates are compared together with the arms; give `arms` too.")
    if not words:
        return
    meant = _as_stored(stored if arms is None else arms, candidates, words, settings)
    other = difference(from_json(settings, stored).to_json(), meant)
    if other is not None:
        raise StudyError(
            f"study {name!r} was created with other settings: {other}. Leave them out to go on, "
            "or create a study of another name."
        )


def _joined(arms: Arms, candidates: Any) -> Arms:
    """Return arms with the candidates, as a study keeps them."""
    for name, value in (("arms", arms), ("candidates", candidates)):
        if value is not None and not isinstance(value, Arms):
            raise StudyError(f"{name} is of type {type(value).__name__}; use Arms(features).")
    return arms if candidates is None else arms.with_candidates(candidates)


def _left_out(given: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the given arguments leave out of the noise, as the study has it."""
    own = not takes_sigma(stored["model"])
    if "sigma" in given:
        return {} if own else {"noise": stored["model"]}
    if "noise" not in given:
        return {"sigma": 1.0}  # whatever it is: the noise is not compared
    word = "gaussian" if given["noise"] is None else given["noise"]
    if not (isinstance(word, str) and word in NOISES and takes_sigma(word)):
        return {}
    return {"sigma": stored["sigma"] if word == stored["model"] else 1.0}  # they differ anyway


def _as_stored(
    arms: Arms, candidates: Arms | None, given: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return given arguments of `create` as the settings that they are stored as."""
    words = {**_left_out(given, settings["noise"]), **given}
    words.setdefault("budget", settings["budget"])  # some strategies need it
    try:
        stored = settings_of(arms, candidates=candidates, **words).to_json()
    except TypeError as error:
        raise StudyError(f"{error}; give arguments of Study.create.") from None
    keys = [_STORED.get(word, word) for word in given]
    for key in keys:
        if key not in stored:  # a word of `Problem`
            raise StudyError(f"{key!r} is not an argument of Study.create; leave it out.")
    return {key: stored[key] for key in keys}
