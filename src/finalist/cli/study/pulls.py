"""`finalist void`, `missing` and `amend`: measurements that went wrong."""

from typing import Annotated

import typer

from finalist.cli.options import Printed, PrintedOption
from finalist.cli.study.common import DbOption, PullNumber, ReasonOption, StudyName, opened, say
from finalist.files import printable

VOID_HELP = """Give up a measurement that failed; the same arm is measured again.

\b
Example:
  finalist void seeds 17 --reason "the plate was dropped"

The reason must have nothing to do with the value: leaving out rewards because of what they are
breaks the guarantee. --format json has the keys name, void, replacement (pull_id, arm, worker).
"""
MISSING_HELP = """Go on without a measurement, of an arm that cannot be measured again.

\b
Example:
  finalist missing seeds 17 --reason "no seeds are left"

As with 'finalist void', the loss must have nothing to do with the value. --format json has the keys
name, missing, status (as in 'finalist status', without a forecast).
"""
AMEND_HELP = """Replace a reward that was told wrongly, as long as no decision has used it.

\b
Example:
  finalist amend seeds 17 0.53 --reason "a typing error"

The old value stays in the log. After the decision, 'finalist fork' starts anew from before it.
--format json has the keys name, amended, reward.
"""


def void(
    name: StudyName,
    pull: PullNumber,
    reason: ReasonOption,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Give up a pull."""
    with opened(db, name) as study:
        new = study.void(pull, reason)
    words = f"Pull {pull} is void. Pull {new.pull_id} replaces it: {printable(new.arm)}."
    say(form, words, name=name, void=pull, replacement=vars(new))


def missing(
    name: StudyName,
    pull: PullNumber,
    reason: ReasonOption,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Go on without a pull."""
    with opened(db, name) as study:
        study.missing(pull, reason)
        found = study.status(forecast=False)
    words = f"Pull {pull} is missing; the study goes on without it.\n{printable(found.sentence)}"
    say(form, words, name=name, missing=pull, status=found.to_dict())


def amend(
    name: StudyName,
    pull: PullNumber,
    reward: Annotated[float, typer.Argument(metavar="REWARD", help="What it should have been.")],
    reason: ReasonOption,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Mend a reward."""
    with opened(db, name) as study:
        study.amend(pull, reward, reason)
    say(
        form,
        f"The reward of pull {pull} is {reward!r} now.",
        name=name,
        amended=pull,
        reward=reward,
    )
