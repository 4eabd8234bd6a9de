"""The two processes of an embedded server: the leader and the follower, each put together from its parts.

The only place that knows that the journal is SQLite, the engine is this machine and the server is uvicorn.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import uvicorn

from muster.api.app import Identify, make_app
from muster.api.guard import is_loopback
from muster.app.identity import Provider, find_provider
from muster.app.notifying import FileMarks, find_stamp, read_routes
from muster.app.patience import PatientProtocol, keep_looking
from muster.app.process import (
    WallClock,
    allow_connections,
    only_follower,
    run_http,
    settle_memory,
    stop_on_signals,
    write_note,
)
from muster.app.warming import load_code
from muster.control.counsel import Counsel
from muster.control.desk import Desk
from muster.control.follower import Follower
from muster.control.herald import Route
from muster.control.history import fill_history
from muster.control.leader import KERNEL_FAILED, STORE_FAILED, Leader
from muster.control.loading import load_world
from muster.engines.local.capacity import discover_machine
from muster.engines.local.engine import LocalEngine
from muster.engines.local.layout import log_path
from muster.engines.local.log_file import start_log
from muster.kernel.warm import warm_up
from muster.learning import hazard
from muster.learning.foretelling import REMEMBERED_MAX, RuntimeAdviser
from muster.learning.packing import PackingAdviser
from muster.model.errors import ConflictError, RejectedError, StoreError
from muster.model.job import NodePhase
from muster.model.node import address_of
from muster.model.reason import Code, Reason
from muster.model.spec import is_name
from muster.outward.http import fetch
from muster.ports import Adviser
from muster.ports.store import Wanted
from muster.sdk.home import Address, Home
from muster.sdk.node_file import read_node_file
from muster.stores.sqlite import SqliteJournal, SqliteStore
from muster.world.world import World

JOURNAL_PATIENCE_S: Final = 10.0
JOURNAL_LOOK_S: Final = 0.05
FAREWELL_S: Final = 2
BACKLOG: Final = 1024
WILDCARDS: Final = ("0.0.0.0", "::")  # noqa: S104 - names for every address of the machine

Beside: TypeAlias = Callable[[], Coroutine[object, object, None]]
"""What runs for ever beside a server."""

_log = logging.getLogger(__name__)


class LocalLogs:
    """The Logs of tasks that ran on this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_log(self, job: int, task: int, epoch: int) -> Path | None:
        """The file, or None if nothing was ever written."""
        path = log_path(self._root, job, task, epoch)
        return path if path.exists() else None


def lead(home: Home) -> int:
    """Be the leader of a home until told to end; the exit code."""
    start_log(home.log_file("leader"), logging.INFO)
    home.prepare()
    said = read_node_file(home.node_file)
    traits, machine = said.traits(), discover_machine()
    capacity = said.capacity_of(machine.capacity)
    devices = machine.devices if capacity.gpus == len(machine.devices) else ()  # declared GPUs have no ids
    with contextlib.closing(SqliteStore(home.journal_file)) as store:
        write_note(home.process_file("leader"))
        if filled := fill_history(store):
            _log.info("history was made from %d entries", filled)
        load_code(home, warm_up)
        world = load_world(store)
        settle_memory()
        name = node_name()
        former = find_former(world, address_of(name, traits.place))
        engine = LocalEngine(home.engine_root, name, capacity, traits, devices, former)
        leader = Leader(
            world, store, engine, WallClock(), home.leader_socket, home.root, history_ms=home.read_history_ms()
        )
        return asyncio.run(_lead(leader))


def node_name() -> str:
    """What this node is called: its hostname, if that can name a node."""
    name = socket.gethostname()
    return name if is_name(name) else "localhost"


def find_former(world: World, address: str) -> list[str]:
    """What this machine was called before. A home has one node, its own: any other that is not gone is this one, under
    a name or in a cluster that it no longer has, and would count twice."""
    fleet = world.fleet
    return [
        known for slot, known in enumerate(fleet.addresses) if known != address and fleet.phase[slot] != NodePhase.GONE
    ]


def follow(home: Home, host: str, port: int, tls: Tls | None = None) -> int:
    """Be a follower of a home, and serve its API, until told to end; the exit code."""
    start_log(home.log_file("follower"), logging.INFO)
    check_host(host, tls)
    home.prepare()
    allow_connections()
    settings = Settings(find_provider(home.oidc_file), read_routes(home.notify_file))
    with only_follower(home):
        load_code(home, warm_up, *([hazard.warm_up] if home.learns else []))
        with contextlib.closing(bind(host, port, home.find_address())) as listening:
            return run_http(_follow(home, host, listening, tls, settings))


class Settings(NamedTuple):
    """What the admin wrote into files of the home."""

    provider: Provider | None
    routes: list[Route]


class Tls(NamedTuple):
    """A certificate and its key, as files; both are PEM."""

    cert: Path
    key: Path


def check_host(host: str, tls: Tls | None = None) -> None:
    """Raise unless `host` is this machine alone, or there is TLS: else the token would cross a network in the clear."""
    if tls is not None:
        _check_tls(tls)
    elif not is_loopback(host):
        raise RejectedError(Reason(Code.TLS_NEEDED, "--host", detail=host))


def _check_tls(tls: Tls) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.cert, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise RejectedError(Reason(Code.BAD_SPEC, "--tls-cert", detail=f"{tls.cert}: {error}")) from error


def names_in(cert: Path) -> list[str]:
    """The names that a certificate has: they are this server's, so a request for one of them is meant for it."""
    from cryptography import x509  # only who listens beyond this machine needs it

    found = x509.load_pem_x509_certificate(cert.read_bytes())
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    spelt = names.get_values_for_type(x509.DNSName)
    return [*map(str.lower, spelt), *map(str, names.get_values_for_type(x509.IPAddress))]


def bind(host: str, port: int, last: Address | None) -> socket.socket:
    """A listening socket: on the port asked for, else on the last one if it is free, else on one the system gives."""
    tries = [port] if port else [last.port if last else 0, 0]
    for each in tries:
        try:
            return _listen(host, each)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise RejectedError(Reason(Code.BAD_SPEC, "--host", detail=f"{host}: {error.strerror}")) from error
    raise ConflictError(Reason(Code.PORT_TAKEN, "port", needed=tries[-1]))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, or asyncio leaves small packets to wait for the other side's acknowledgement, 40 ms each.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


async def _lead(leader: Leader) -> int:
    return await leader.run(stop_on_signals())


async def _follow(home: Home, host: str, listening: socket.socket, tls: Tls | None, settings: Settings) -> int:
    stop = stop_on_signals()
    journal = await _open_journal(home.journal_file, stop)
    if journal is None:
        return 0
    with contextlib.closing(journal):
        follower = Follower(load_world(journal), journal, WallClock(), home.leader_socket)
        settle_memory()
        keep_keys, oidc = _know_people(settings.provider, follower)
        desk = _desk(home, settings.routes, follower)
        counsel = Counsel(follower, _advisers(journal, follower.world, learns=home.learns))
        names = [host.lower(), *([] if tls is None else names_in(tls.cert))]
        app = make_app(follower, LocalLogs(home.engine_root), home.read_token(), names, oidc, desk)
        server = _Server(configure(app, tls))
        cert = "" if tls is None else str(tls.cert.absolute())
        reachable = names[1] if host in WILDCARDS and len(names) > 1 else host
        home.write_address(Address(reachable, listening.getsockname()[1], cert))
        return await _serve_until(
            stop, server, follower, listening, [each for each in (keep_keys, desk.run, counsel.run) if each is not None]
        )


def _advisers(journal: SqliteJournal, world: World, *, learns: bool) -> list[Adviser]:
    """Who advises: on packing, and on run times unless that is switched off; what is known of those is in history."""
    if not learns:
        return [PackingAdviser()]
    newest = Wanted(after=max(0, world.next_job - REMEMBERED_MAX), limit=REMEMBERED_MAX)
    return [PackingAdviser(), RuntimeAdviser(journal.read_finished(newest))]


def _know_people(provider: Provider | None, follower: Follower) -> tuple[Beside | None, Identify | None]:
    """What keeps the keys of an identity provider, and who its tokens say somebody is, if there is one."""
    if provider is None:
        return None, None
    from muster.access.oidc import Oidc  # who has no provider need not load the cryptography
    from muster.control.keyring import Keyring

    keyring = Keyring(provider.trust.issuer, provider.jwks, fetch, WallClock())
    return keyring.run, Oidc(provider.trust, follower.roster, keyring.find_keys, keyring.miss).identify


def _desk(home: Home, routes: list[Route], follower: Follower) -> Desk:
    """What tells people of what happened."""
    path = home.notify_file
    return Desk(follower, routes, partial(read_routes, path), partial(find_stamp, path), FileMarks(home.notices_file))


async def _go_on(beside: Beside) -> None:
    """Run something for ever; if it breaks, that is told and nobody else is harmed."""
    try:
        await beside()
    except Exception:  # noqa: BLE001 - of whatever kind: people are served all the same
        _log.critical("something that runs beside the server broke", exc_info=True)


async def _open_journal(path: Path, stop: asyncio.Event) -> SqliteJournal | None:
    """The journal, which a leader that starts beside us may be about to make or to lift; None if told to end first."""
    for _ in range(int(JOURNAL_PATIENCE_S / JOURNAL_LOOK_S)):
        journal = SqliteJournal(path) if path.exists() else None
        if journal is not None and journal.is_current():
            return journal
        if journal is not None:
            journal.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), JOURNAL_LOOK_S)
            return None
    raise StoreError(Reason(Code.NO_LEADER))


async def _serve_until(
    stop: asyncio.Event,
    server: uvicorn.Server,
    follower: Follower,
    listening: socket.socket,
    beside: Sequence[Beside],
) -> int:
    """Serve until told to end, or until the journal cannot be followed any more; the exit code."""
    following = asyncio.ensure_future(follower.run())
    looking = asyncio.ensure_future(keep_looking(server.server_state.connections))
    others = [asyncio.ensure_future(_go_on(each)) for each in beside]
    stopping = asyncio.ensure_future(stop.wait())
    serving = asyncio.ensure_future(server.serve([listening]))
    _log.info("serving on port %d from entry %d", listening.getsockname()[1], follower.world.seq)
    await asyncio.wait([following, stopping, serving], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await serving
    for task in (stopping, looking, *others, following):
        task.cancel()
    [failure] = await asyncio.gather(following, return_exceptions=True)
    if isinstance(failure, asyncio.CancelledError):
        return 0
    _log.critical("stopping at entry %d: %s", follower.world.seq, failure, exc_info=failure)
    return STORE_FAILED if isinstance(failure, StoreError) else KERNEL_FAILED


def configure(app: object, tls: Tls | None = None) -> uvicorn.Config:
    """The HTTP server of a follower: ours alone decides what is heard, logged and timed."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # uvicorn names its own copy of the ASGI types
        interface="asgi3",
        loop="asyncio",
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=FAREWELL_S,
        ssl_certfile=None if tls is None else tls.cert,
        ssl_keyfile=None if tls is None else tls.key,
    )


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would end the process by the signal after it was served."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
