"""A request that is refused before it reaches a study."""

from collections.abc import Mapping


class RefusedError(Exception):
    """An answer instead of the one that was asked for.

    Parameters
    ----------
    status : int
        Of HTTP.
    error : str
        One word for programs.
    message, remedy : str
        What was wrong, and what to do.
    headers : mapping, optional
    """

    def __init__(
        self,
        status: int,
        error: str,
        message: str,
        remedy: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.error, self.message, self.remedy = status, error, message, remedy
        self.headers = dict(headers or {})
