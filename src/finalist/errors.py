"""Every exception finalist raises on purpose.

Each message says what was wrong, with the value, and what to do. Everything derives from
`FinalistError`; errors about bad values are also `ValueError`, look-ups are also `KeyError`,
so that code which does not know finalist catches them the usual way.
"""

from collections.abc import Sequence


class FinalistError(Exception):
    """Base class of all errors raised on purpose by finalist."""

    def __str__(self) -> str:
        # KeyError would show the repr of its argument, quotes and all.
        return str(self.args[0]) if self.args else ""


class ArmsError(FinalistError, ValueError):
    """Features or names that cannot be a set of arms."""


class UnknownArmError(FinalistError, KeyError):
    """No arm has this name."""


class FileFormatError(FinalistError, ValueError):
    """A file that cannot be parsed; the message has the line and the column."""


class UnclearTableError(FileFormatError):
    """A table that can be used once somebody says how.

    Parameters
    ----------
    reason : str
        What is unclear, and what can be done.
    choices : sequence of str
        What to say, as options without their dashes: "decimal=,".
    """

    def __init__(self, reason: str, choices: Sequence[str]) -> None:
        self.reason, self.choices = reason, tuple(choices)
        super().__init__(f"{reason} {' or '.join(choices)}.")

    def __reduce__(self) -> tuple[type, tuple[str, tuple[str, ...]]]:
        return type(self), (self.reason, self.choices)

    @property
    def options(self) -> str:
        """The message, with what to say as options of a command."""
        return f"{self.reason} {' or '.join(f'--{choice}' for choice in self.choices)}."


class ProblemError(FinalistError, ValueError):
    """A problem that is not well posed: delta, noise, goal, costs or candidates."""


class NotYetSupportedError(FinalistError, NotImplementedError):
    """A setting that `Problem` can express but that is not supported here yet."""


class DirectionError(FinalistError, ValueError):
    """Directions of the wrong shape, not finite, or none at all."""


class OutsideSpanError(DirectionError):
    """A direction that no measurement of these arms can estimate."""


class RewardError(FinalistError, ValueError):
    """A reward that is not a finite number, or belongs to no arm."""


class DesignError(FinalistError, ValueError):
    """A design, a criterion or a number of pulls that cannot be used."""


class TiedArmsError(FinalistError, ValueError):
    """Two arms are equally good where a single best arm is needed."""


class MissingExtraError(FinalistError, ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""


class EstimateError(FinalistError, ValueError):
    """A quantity that the rewards so far cannot give."""


class BoundError(FinalistError, ValueError):
    """A confidence width that does not exist for the given numbers."""


class ParameterError(FinalistError, ValueError):
    """A parameter theta of the wrong length, not finite, or so large that rewards overflow."""


class ChartError(FinalistError, ValueError):
    """A chart that cannot be drawn from these numbers, or saved under this name."""


class OutputError(FinalistError, ValueError):
    """A file that cannot be written where it should go."""


class SimulationError(FinalistError, ValueError):
    """A simulation that cannot be run, or results that do not belong together."""


class StoreError(FinalistError, ValueError):
    """Not a results file, written by a newer version, or corrupted."""


class StudyError(FinalistError, ValueError):
    """Something a study cannot do, or a study that does not exist."""


class ConflictError(StudyError):
    """What was told contradicts what is on record."""


class NotNeededError(ConflictError):
    """A pull that the study was decided without; nothing has to be done about it."""


class UnknownStudyError(StudyError, KeyError):
    """No study has this name."""


class UnknownPullError(StudyError, KeyError):
    """The study has no pull with this number."""


class NameTakenError(StudyError):
    """Another study already has this name."""


class StorageError(FinalistError, RuntimeError):
    """A database that cannot be opened, read or written; nothing was changed."""


class BusyError(StorageError):
    """The database was locked by someone else for too long; try again."""


class DeadlineError(FinalistError, TimeoutError):
    """The work exceeded the server's deadline for one request and was ended."""


class TooLargeError(FinalistError, ValueError):
    """A request above a limit of the server; the message has the limit."""


class RemoteError(FinalistError, RuntimeError):
    """A server of studies that cannot be reached, or that refuses a request."""


class SchemaError(StorageError):
    """A database that a newer version or another program wrote, or that is damaged."""


class ForeignFileError(SchemaError):
    """A database of another program."""


class DamagedError(SchemaError):
    """A database whose content is inconsistent."""
