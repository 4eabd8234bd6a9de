"""`muster login` and `logout`: which server this home's commands speak to, and with which token, from now on.

The token comes from the terminal or from standard input, never from the command line, which others may read; it is
tried before it is kept.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.sdk.client import Client
from muster.sdk.errors import NoServerError
from muster.sdk.exchange import Connection
from muster.sdk.home import Home
from muster.sdk.whereabouts import Address, Login
from muster.units import show_instant

LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONNECT_S = 10.0
PORTS = {"https": 443, "http": 80}


@click.command()
@click.option("--server", required=True, metavar="URL", help="Where it listens: https://muster.example.org:8443")
@click.option("--ca-cert", type=click.Path(path_type=Path), metavar="FILE", help="Whom to trust, if not all know them.")
def login(server: str, ca_cert: Path | None) -> None:
    """Be a client of a server elsewhere, with a token, from now on: muster login --server URL < token"""
    home, address = Home(), _read_address(server, ca_cert)
    if home.journal_file.exists() or home.find_address() is not None:
        raise RejectedError(Reason(Code.HAS_A_SERVER, str(home.root)))
    _check_trust(address)
    token = _ask_token()
    with Client(address=address, token=token, patience_s=1) as client:
        me = client.me()
    home.write_login(Login(address, token))
    until = "" if me.until_ms is None else f", until {show_instant(me.until_ms)}"
    click.echo(f"logged in to {address.url} as {me.name}{until}")


def _read_address(server: str, ca_cert: Path | None) -> Address:
    try:
        parts = urlsplit(server)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise click.UsageError(f"--server {server}: {error}") from error
    if parts.scheme not in PORTS or not host or parts.path.strip("/") or parts.query or parts.username is not None:
        raise click.UsageError(f"--server {server}: write https://HOST:PORT, with nothing after it")
    if parts.scheme == "http" and host not in LOOPBACK:
        raise RejectedError(Reason(Code.IN_THE_CLEAR, host))
    if ca_cert is not None and not ca_cert.is_file():
        raise click.UsageError(f"--ca-cert {ca_cert}: there is no such file")
    cert = "" if ca_cert is None or parts.scheme == "http" else str(ca_cert.absolute())
    return Address(host, port or PORTS[parts.scheme], cert, is_tls=parts.scheme == "https")


def _check_trust(address: Address) -> None:
    """Raise if the server shows a certificate that nobody here trusts: a client would say that none answers."""
    if not address.is_tls:
        return
    import ssl  # not for a server on this machine

    try:
        Connection(address, CONNECT_S).close()
    except ssl.SSLError as error:
        words = f"{address.url}: its certificate is not trusted: {error.reason or error}"
        raise click.UsageError(f"{words}; name one that is with --ca-cert") from error
    except OSError as error:
        raise NoServerError(address.url) from error


def _ask_token() -> str:
    """The first line that somebody types, unseen, or that comes from a pipe."""
    token = click.prompt("token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    if not token.strip() or not token.strip().isascii() or not token.strip().isprintable():
        raise click.UsageError("no token came: type it, or pipe it in (`muster tokens make` prints one)")
    return str(token).strip()


@click.command()
def logout() -> None:
    """Forget the login; the token itself stays valid until it is dropped or ends."""
    home = Home()
    known = home.find_login()
    home.login_file.unlink(missing_ok=True)
    click.echo("nobody was logged in" if known is None else f"logged out of {known.address.url}")


COMMANDS = {"login": login, "logout": logout}
