"""Studies on a server, from another machine: the same methods as `Study`, over HTTP.

Idempotent requests are retried automatically when no response comes: reading, asking, and telling,
which carries a key by which the server recognises a repeated call.
"""

from typing import TYPE_CHECKING, Any, Unpack
from uuid import uuid4

import numpy as np

from finalist.arms import Arms
from finalist.client.http import Http
from finalist.client.values import (
    arms_body,
    each,
    history_rows,
    parse_arms,
    parse_batch,
    parse_status,
    problem_body,
    results_body,
    strategy_words,
    table_of,
)
from finalist.errors import UnknownStudyError
from finalist.extras import need
from finalist.files import printable
from finalist.problem import PerArm, Problem, study_problem
from finalist.settings import ProblemWords, spelled_out_of_study
from finalist.shapes import Float, Int
from finalist.strategies import Strategy
from finalist.study import Batch, Pull, Status
from finalist.study.history import with_sigma
from finalist.study.results import as_history
from finalist.tables import Dialect

if TYPE_CHECKING:
    import pandas as pd


def connect(
    url: str, token: str | None = None, *, timeout: float = 60.0, patience: float = 60.0
) -> "Server":
    """Work with studies on a server that `finalist serve` runs.

    Parameters
    ----------
    url : str
        Its address, such as ``http://lab-pc:8765``.
    token : str, optional
        What `finalist serve --new-token` printed.
    timeout : float
        Seconds to wait for a response.
    patience : float
        Seconds for which a request is retried while no response comes, as when the server
        restarts.

    Examples
    --------
    >>> lab = connect("http://127.0.0.1:8765")
    >>> lab
    Server('http://127.0.0.1:8765')
    >>> study = lab.open("seeds")  # doctest: +SKIP
    >>> study.tell({pull.pull_id: measure(pull.arm) for pull in study.ask(12)})  # doctest: +SKIP
    """
    return Server(Http(url, token, timeout, patience))


class Server:
    """A server of studies; use `connect`."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def __repr__(self) -> str:
        return f"Server({self._http.url!r})"

    def studies(self) -> list[str]:
        """Return the names of all studies."""
        return [line["name"] for line in self._http.get("/studies")["studies"]]

    def open(self, name: str) -> "RemoteStudy":
        """Open an existing study."""
        found = self._http.get("/studies", name=name)["studies"]
        if not found:
            raise UnknownStudyError(
                f"there is no study {printable(name, 60)!r} on {self._http.url}; "
                "`studies()` has the names."
            )
        number = found[0]["number"]
        return RemoteStudy(self._http, self._http.get(f"/studies/{number}"))

    @spelled_out_of_study
    def create(
        self,
        name: str,
        arms: Arms | Problem,
        strategy: Strategy | str = "gauntlet",
        *,
        seed: int | None = None,
        metadata: dict[str, Any] | None = None,
        history: Any = None,
        **words: Unpack[ProblemWords],
    ) -> "RemoteStudy":
        """Create a study; the keywords are those of `Study.create`."""
        earlier = None if history is None else as_history(history)
        problem = study_problem(arms, **with_sigma(words, arms, earlier))
        body = {
            "name": name,
            **problem_body(problem),
            **strategy_words(strategy),
            "seed": seed,
            "metadata": dict(metadata or {}),
            **({} if earlier is None else {"history": history_rows(earlier)}),
        }
        return RemoteStudy(self._http, self._http.post("/studies", body))


class RemoteStudy:
    """A study on a server, with the methods of `Study`; threads may share it."""

    def __init__(self, http: Http, about: dict[str, Any]) -> None:
        self._http, self._about = http, about
        self._path = f"/studies/{about['number']}"

    def __repr__(self) -> str:
        return f"RemoteStudy({self._http.url!r}, {self.name!r})"

    def __enter__(self) -> "RemoteStudy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: no connection is kept open."""

    @property
    def name(self) -> str:
        """Its name on the server."""
        return str(self._about["name"])

    @property
    def number(self) -> int:
        """Its number in the database."""
        return int(self._about["number"])

    @property
    def created(self) -> str:
        """When it was created, UTC."""
        return str(self._about["created"])

    @property
    def settings(self) -> dict[str, Any]:
        """All settings it was created with except the arms, as plain values."""
        settings: dict[str, Any] = self._http.get(self._path)["settings"]
        return settings

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata given at creation."""
        return dict(self.settings["metadata"])

    @property
    def arms(self) -> Arms:
        """The current arms."""
        return parse_arms(self._http.get(f"{self._path}/arms"))

    # ---- measuring -----------------------------------------------------------------------

    def ask(self, size: int | None = None, worker: str | None = None) -> Batch:
        """Return what to measure next; as `Study.ask`."""
        body = {"size": None if size is None else int(size), "worker": worker}
        return parse_batch(self._http.post(f"{self._path}/ask", body, repeat=True))

    def tell(self, results: Any, client_id: str | None = None, **dialect: str | None) -> int:
        """Store rewards: all of them, or none on an error; as `Study.tell`.

        If no response comes, the call is repeated under the same key. When this returns, the
        rewards are on the server's disk.
        """
        key = uuid4().hex if client_id is None else client_id
        headers = {"Idempotency-Key": key}
        table = table_of(results, Dialect(**dialect))
        if table is not None:
            content, kind, query = table
            headers["Content-Type"] = kind
            form = "csv" if kind == "text/csv" else "xlsx"
            answer = self._http.send(f"{self._path}/tell.{form}", content, headers, **query)
        else:
            body = results_body(results)
            if not body["results"]:
                return 0
            answer = self._http.post(f"{self._path}/tell", body, headers, repeat=True)
        return int(answer["new"])

    def void(self, pull_id: int, reason: str) -> Pull:
        """Give up a failed measurement and return the pull that replaces it."""
        return Pull(**self._of_pull(pull_id, "void", reason=reason))

    def missing(self, pull_id: int, reason: str) -> None:
        """Continue without a measurement, of an arm that cannot be measured again."""
        self._of_pull(pull_id, "missing", reason=reason)

    def amend(self, pull_id: int, reward: float, reason: str) -> None:
        """Correct a wrong reward, as long as no decision has used it."""
        self._of_pull(pull_id, "amend", reward=float(reward), reason=reason)

    def undo(self, event: int | None = None) -> dict[int, float]:
        """Take back the rewards that were told last; as `Study.undo`."""
        answer = self._http.post(f"{self._path}/undo", {"event": event})
        return {row["pull_id"]: row["reward"] for row in answer["results"]}

    def _of_pull(self, pull_id: int, verb: str, **body: Any) -> dict[str, Any]:
        return self._http.post(f"{self._path}/pulls/{int(pull_id)}/{verb}", body)

    # ---- the rest of a study's life --------------------------------------------------------

    def import_history(self, table: Any) -> int:
        """Bring in measurements made before the study; as `Study.import_history`."""
        rows = history_rows(as_history(table))
        return int(self._http.post(f"{self._path}/import", {"measurements": rows})["count"])

    def withdraw(self, *names: str) -> str:
        """Withdraw arms; as `Study.withdraw`."""
        return self._words("withdraw", {"names": list(names)})

    def add(self, arms: Arms, *, sigma: PerArm | None = None, cost: PerArm | None = None) -> str:
        """Add arms; as `Study.add`."""
        more = {"sigma": each(sigma), "cost": each(cost)}
        return self._words("add", arms_body(arms) | more)

    def set_budget(self, budget: int | None) -> str:
        """Go on with another budget; as `Study.set_budget`."""
        return self._words("budget", {"budget": None if budget is None else int(budget)})

    def fork(
        self,
        name: str,
        until: int | None = None,
        *,
        model: str | None = None,
        epsilon: float | None = None,
    ) -> "RemoteStudy":
        """Start a new study from before a batch, or with another model or margin (`Study.fork`)."""
        body: dict[str, Any] = {"name": name, "until": until, "model": model}
        if epsilon is not None:  # an older server knows none
            body["epsilon"] = float(epsilon)
        return RemoteStudy(self._http, self._http.post(f"{self._path}/fork", body))

    def stop(self, reason: str) -> Status:
        """Stop without a winner, and return what is certain."""
        self._words("stop", {"reason": reason})
        return self.status(forecast=False)

    def resume(self) -> None:
        """Continue after `stop`."""
        self._http.post(f"{self._path}/resume", None)

    def note(self, text: str) -> None:
        """Write a remark into the log."""
        self._words("note", {"text": text})

    def delete(self) -> None:
        """Delete the study with all its events, permanently."""
        self._http.delete(self._path, name=self.name)

    def _words(self, verb: str, body: dict[str, Any]) -> str:
        return str(self._http.post(f"{self._path}/{verb}", body)["words"])

    # ---- looking -------------------------------------------------------------------------

    def status(self, *, forecast: bool = True, within: float | None = None) -> Status:
        """Return what is certain; as `Study.status`."""
        wanted = {"forecast": "true" if forecast else "false"}
        if within is not None:
            wanted["within"] = repr(float(within))
        return parse_status(self._http.get(f"{self._path}/status", **wanted))

    def evidence(self) -> tuple[Int[np.ndarray, " B"], Float[np.ndarray, "B K"]]:
        """Return the evidence against each arm over time; as `Study.evidence`."""
        found = self._http.get(f"{self._path}/evidence")
        rows = np.array(found["evidence"], dtype=float).reshape(-1, len(found["arms"]))
        return np.array(found["pulls"], dtype=np.int64), rows

    def history(self) -> list[dict[str, Any]]:
        """Return the events, oldest first, as plain values."""
        events: list[dict[str, Any]] = self._http.get(f"{self._path}/history")["events"]
        return events

    def to_frame(self) -> "pd.DataFrame":
        """Return every pull; as `Study.to_frame`."""
        need("Data frames", "pandas")
        import pandas as pd

        from finalist.study.exports import COLUMNS

        frame = pd.DataFrame(self._http.get(f"{self._path}/pulls")["pulls"], columns=list(COLUMNS))
        return frame.astype({"pull_id": np.int64, "batch": np.int32, "reward": float})
