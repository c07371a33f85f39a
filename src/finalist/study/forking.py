"""A new study from an old one: from before a batch, or with another model or margin.

With another model or margin the old results are its history. They may have suggested it, so they
cannot test it: the new study begins with fresh evidence and a delta of its own, and uses them only
to choose where to measure.
"""

import secrets
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from finalist import __version__
from finalist.errors import FinalistError, StudyError
from finalist.inference.effects import Effects
from finalist.inference.statistics import BatchResults
from finalist.problem import Problem
from finalist.problem.remodel import with_margin, with_model
from finalist.problem.rules import NEWEST
from finalist.shapes import Bool, Float, Int
from finalist.study.creation import begin
from finalist.study.log import Log
from finalist.study.measure import decide
from finalist.study.pulls import Fate
from finalist.study.replay import Replay
from finalist.study.results import Results
from finalist.study.rules import check_name
from finalist.study.settings import Settings
from finalist.study.state import State
from finalist.study.storage.reader import Reader
from finalist.study.tables import read_arms


class Measured(NamedTuple):
    """Measurements by the names of arms.

    Attributes
    ----------
    batch : (n,) array of int
        0 for what the study itself had as history.
    """

    names: list[str]
    rewards: Float[np.ndarray, " n"]
    batch: Int[np.ndarray, " n"]


def fork(log: Log, name: str, until: int | None, model: str | None, epsilon: float | None) -> None:
    """Start a study from another one: from before a batch, or with another model or margin."""
    asks = model is not None or epsilon is not None
    if (until is None) != asks:
        both = "both are given" if asks else "neither is given"
        raise StudyError(
            "give either the batch to fork at, until, or another question, model or epsilon; "
            f"{both}."
        )
    if until is None:
        _fork_with(log, name, model, epsilon)
    else:
        copy_until(log, name, until)


def copy_until(log: Log, name: str, until: int) -> None:
    """Copy the log of a study up to the issue of a batch, under a new name."""
    check_name(name)
    source = log.row.id
    with log.storage.write() as writer:
        writer.lock(source)
        events = writer.events(source)
        issued = [e for e in events if e.kind == "issued" and e.body["batch"] == until]
        if not issued or isinstance(until, bool):
            raise StudyError(f"study {log.row.name!r} has no batch {until!r} to fork at.")
        copied = events[: issued[0].number]
        number = writer.create(name, log.row.settings, __version__)
        for stage in (0, *(e.body["stage"] for e in copied if e.kind == "changed")):
            writer.add_arms(number, stage, *writer.arms(source, stage))
        rewards, notes = writer.rewards(source), writer.notes(source)
        cuts = np.searchsorted(rewards.event, [event.number for event in events] + [np.inf])
        for event, first, end in zip(copied, cuts, cuts[1:], strict=False):
            body, pulls = event.body, rewards.pull[first:end]
            remarks = [notes.get(int(pull)) for pull in pulls]
            told = Results(pulls, rewards.value[first:end], note=remarks) if end > first else None
            if event.kind == "created":
                body = {**body, "fork_of": log.row.name, "until": int(until)}
                if "model" in body:  # the study that it came from still counts
                    body |= {"model": None, "epsilon": None}
                    body |= {"risk": body["risk"] + log.row.settings["delta"]}
            writer.append(number, event.number, event.kind, body, rewards=told)
        new = Log(log.storage, writer.study(name))
        decide(new, writer, new.within(writer))  # as it was decided when the batch was issued


def _fork_with(log: Log, name: str, model: str | None, epsilon: float | None) -> None:
    """Start a study with another model or margin, and all results of this one as its history.

    The new study is there with its history, or not at all; whoever tells results to the old one
    meanwhile does so before or after.
    """
    check_name(name)
    with log.writing() as (writer, now):
        settings = _settings(now, model, epsilon)
        history = _history(_measured(now, writer, log.row.id), settings.problem)
        _refuse_unusable(settings, history)
        origin = {"fork_of": log.row.name, "until": None, "model": model, "risk": _spent(now)}
        if epsilon is not None:
            origin["epsilon"] = settings.problem.epsilon
        begin(writer, name, settings, history, origin)


def _settings(now: State, model: str | None, epsilon: float | None) -> Settings:
    """Return the settings of the new study: those of the old one, with what changes and a seed."""
    problem = now.problem
    try:
        if model is not None:
            problem = with_model(problem, model)
        if epsilon is not None:
            problem = with_margin(problem, epsilon)
        problem = problem.with_(rules=NEWEST)
    except FinalistError as error:
        what = f"the model {model!r}" if epsilon is None else f"epsilon={epsilon!r}"
        raise StudyError(f"this study cannot go on with {what}: {error}") from error
    if model is None and problem.epsilon == now.problem.epsilon:
        raise StudyError(
            f"this study has the margin {problem.epsilon:g} already; give another epsilon, 0 for "
            "none."
        )
    return replace(now.settings, problem=problem, seed=secrets.randbits(53))


def _spent(now: State) -> float:
    """Return the probability of error of this study, and of those it came from."""
    own = sum(now.levels)
    if now.fork is None:
        return own
    return own + (now.fork.risk or now.settings.problem.delta)


def _measured(now: State, reader: Reader, study: int) -> Measured:
    """Return all results of a study, with those that it had as history itself."""
    names: list[str] = []
    rewards: list[float] = []
    arms = {stage: read_arms(reader, study, stage).names for stage in range(now.stage + 1)}
    if now.history_pulls:
        body = next(e.body for e in reader.events(study) if e.kind == "history")
        names += [arms[0][arm] for arm in body["arms"]]
        rewards += body["rewards"]
    rows = np.flatnonzero(now.pulls.fate == Fate.TOLD)
    stage_of = {batch.number: batch.stage for batch in now.issued}
    batch = now.pulls.batch[rows].astype(np.int64)
    pairs = zip(batch.tolist(), now.pulls.arm[rows].tolist(), strict=True)
    earlier = len(names)
    names += [arms[stage_of[number]][arm] for number, arm in pairs]
    values = np.append(np.array(rewards, dtype=float), now.pulls.reward[rows])
    return Measured(names, values, np.append(np.zeros(earlier, dtype=np.int64), batch))


def _history(measured: Measured, problem: Problem) -> dict[str, Any] | None:
    """Return the results of arms that are still there, as an event keeps earlier measurements.

    None if there are none.
    """
    arms, rewards = problem.arms, measured.rewards
    kept = np.array([name in arms for name in measured.names], dtype=bool)
    if problem.batch_intercept:
        rewards, comparable = _unshifted(measured)
        kept &= comparable
    if not kept.any():
        return None
    which = [arms.index(measured.names[i]) for i in np.flatnonzero(kept)]
    return {"arms": which, "rewards": rewards[kept].tolist()}


def _refuse_unusable(settings: Settings, history: dict[str, Any] | None) -> None:
    """Raise if the strategy supports neither the new question nor earlier measurements."""
    replay = Replay(settings.strategy.start(settings.problem, seed=settings.seed))
    if history is not None:
        arms, rewards = np.array(history["arms"]), np.array(history["rewards"])
        replay.inform(BatchResults.of(len(settings.problem.arms), arms, rewards))


def _unshifted(
    measured: Measured,
) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Remove the constants of batches, by the effects of arms without a model.

    Earlier measurements count as one batch, so they can be told apart no further. Results that no
    batch links with most of the others are marked as not comparable.
    """
    distinct, arm = np.unique(measured.names, return_inverse=True)
    K, rewards = len(distinct), measured.rewards
    members = {b: np.flatnonzero(measured.batch == b) for b in np.unique(measured.batch).tolist()}
    cells = {}
    for number, rows in members.items():
        count = np.bincount(arm[rows], minlength=K)
        total = np.bincount(arm[rows], rewards[rows], minlength=K)
        seen = np.flatnonzero(count)
        cells[number] = (seen, count[seen].astype(float), total[seen] / count[seen])
    found = Effects.of(K, list(cells.values()))
    part = found.part[arm]
    if not (part >= 0).any():
        return rewards, part >= 0
    free = rewards - found.effect[arm]
    level = float(free.mean())
    adjusted = rewards.copy()
    for rows in members.values():
        adjusted[rows] -= free[rows].mean() - level
    return adjusted, part == np.bincount(part[part >= 0]).argmax()
