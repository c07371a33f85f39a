"""`finalist serve`: the web page, and the API for other machines."""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Annotated

import typer

from finalist.cli.study.common import DbOption, shown, where
from finalist.errors import StudyError
from finalist.text import counted

HELP = """Open a page on which studies are run and watched.

\b
Example:
  finalist serve --db lab.db

By default only this machine can reach it. For others, make a token once and give an address:

\b
  finalist serve --new-token --host 192.168.1.20

The token is printed once, and its hash is kept in a file beside the database (lab.db.token). From
then on it is always required, and the previous one is refused at once, even by a running server. To
do without a token on this machine again, delete that file and restart. For PostgreSQL, give the
token in FINALIST_TOKEN each time. Without a token, everybody with an account on this machine can
reach the studies: make one if you are not alone. Traffic is not encrypted: across a network that is
not yours alone, put a proxy with TLS in front and use --behind-tls, or use an SSH tunnel. Ctrl-C
ends the server; nothing is lost.
"""
#: Environment variable for the token, which no process list shows.
VARIABLE = "FINALIST_TOKEN"
#: User ids of people start at the first and end before the second; the rest are services.
_FIRST_PERSON, _NOBODY = 1000 if sys.platform != "darwin" else 500, 65534


def serve(
    db: DbOption = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Who can reach it: an address of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="0 takes a free one.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar=VARIABLE,
            show_envvar=False,
            help=f"The token that everyone must give; better set it in {VARIABLE}.",
            show_default="the one that was made",
        ),
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Make a token, print it once, keep its hash.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="Another name of this machine. May be repeated."
        ),
    ] = None,
    behind_tls: Annotated[
        bool,
        typer.Option("--behind-tls", help="A proxy with TLS is in front: cookies are Secure."),
    ] = False,
    deadline: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time limit for one request; longer work is stopped."),
    ] = 50.0,
    open_page: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Show the page in a browser.",
            show_default="if there is a screen",
        ),
    ] = None,
) -> None:
    """Check, listen, serve until Ctrl-C."""
    from finalist.web.addresses import address_of, is_loopback, listen, own_hosts
    from finalist.web.security.tokens import stored_hash, token_file

    place = where(db)
    given = _given_hash(token, new_token)
    file = None if given is not None else token_file(place)
    if given is None and not new_token and stored_hash(place) is None and not is_loopback(host):
        raise StudyError(
            f"others can reach {host}, so a token is needed. Make one with 'finalist serve "
            f"--new-token', or give one in {VARIABLE}."
        )
    try:
        bound = listen(host, port)
    except StudyError as error:
        if not new_token or file is None:
            raise
        _make_token(place)
        raise StudyError(
            f"{error} The new token is valid all the same: if a server on this database is using "
            "the port, it asks for the new token from now on."
        ) from error
    from finalist.web.app import create_app
    from finalist.web.server import make_server, warm_up

    try:
        if new_token:
            made = _make_token(place)
            given = made if file is None else None
        app = create_app(
            place,
            token_hash=given,
            token_file=file,
            hosts=(*own_hosts(host), *(allow_host or ())),
            behind_tls=behind_tls,
            deadline=deadline,
        )
    except BaseException:
        bound.close()
        raise
    address = address_of(host, bound)
    typer.echo(f"{shown(db)} is on {address} (Ctrl-C ends this).")
    if not is_loopback(host):
        typer.echo(
            "Warning: traffic is not encrypted, not even the token. Put a proxy with TLS in front, "
            "or use an SSH tunnel, unless the network is yours alone.",
            err=True,
        )
    elif app.state.token.hash() is None and behind_tls:
        typer.echo(
            "Warning: no token is required, so anyone who reaches the proxy can change studies. "
            "--new-token keeps them out.",
            err=True,
        )
    elif app.state.token.hash() is None and (others := other_people()):
        have = counted(others, "other person has an account", "other people have accounts")
        typer.echo(
            f"Warning: {have} on this machine and can open this page. --new-token keeps them out.",
            err=True,
        )
    server = make_server(app)
    warm_up(app)
    if _has_screen() if open_page is None else open_page:
        typer.launch(address)
    signal.signal(signal.SIGTERM, _leave)
    with suppress(KeyboardInterrupt):  # the server has shut down cleanly by then
        server.run(sockets=[bound])


def _leave(number: int, _frame: FrameType | None) -> None:
    """Exit on a signal after the server has finished its requests, and clean up."""
    from finalist.compiled import folders as compiled_folders

    compiled_folders.remove()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _given_hash(token: str | None, new: bool) -> str | None:
    """Return the hash of the given token; None if there is none or a new one is made."""
    from finalist.web.security import tokens

    if new:
        if token is not None and VARIABLE not in os.environ:
            raise StudyError("give --token or --new-token, not both.")
        return None
    if token is None:
        return None
    tokens.check_token(token)
    return tokens.hash_of(token)


def _make_token(place: str) -> str:
    """Make a token, print it once, store its hash and return the hash."""
    from finalist.web.security import tokens

    made = tokens.new_token()
    if tokens.token_file(place) is None:
        kept = f"It is valid until this server ends; give it in {VARIABLE} to keep it."
    else:
        kept = f"Its hash is in {tokens.store_hash(place, tokens.hash_of(made))}."
    typer.echo(f"Token (shown only now): {made}\n{kept}")
    return tokens.hash_of(made)


def other_people() -> int:
    """Return how many other people have an account on this machine, as far as visible."""
    try:
        import pwd
    except ImportError:  # Windows
        return 0
    people = {
        entry.pw_uid
        for entry in pwd.getpwall()
        if _FIRST_PERSON <= entry.pw_uid < _NOBODY
        and entry.pw_shell
        and not entry.pw_shell.endswith(("nologin", "false", "sync"))
    }
    return len(people - {os.getuid()})


def _has_screen() -> bool:
    """Return whether a browser can be opened for the person who ran the command."""
    screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return screen and sys.stdout.isatty()
