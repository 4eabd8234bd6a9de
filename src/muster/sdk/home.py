"""Home: where an embedded server keeps its files.

With `whereabouts`, which names those that a client reads, the only place that names files under `MUSTER_HOME`
(default `~/.muster`). The directory is 0700 and the token 0600.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from muster.model.errors import RejectedError, StoreError
from muster.model.reason import Code, Reason
from muster.sdk.whereabouts import (
    ADDRESS_FILE,
    LOGIN_FILE,
    TOKEN_FILE,
    Address,
    Login,
    default_root,
    find_address,
    find_login,
    read_token,
)
from muster.units import DAY_MS, AmountError, parse_duration

HISTORY_KEPT_MS = 90 * DAY_MS
__all__ = ["Address", "Home"]


class Home:
    """The layout of one home directory."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or Path(default_root())
        self.token_file = self.root / TOKEN_FILE
        self.address_file = self.root / ADDRESS_FILE
        self.journal_file = self.root / "journal.db"
        self.leader_socket = self.root / "leader.sock"
        self.engine_root = self.root / "engine"
        self.node_file = self.root / "node.json"
        self.oidc_file = self.root / "oidc.toml"
        self.notify_file = self.root / "notify.toml"
        self.notices_file = self.root / "notices.json"
        self.listen_file = self.root / "listen.json"
        self.up_lock_file = self.root / "up.lock"
        self.compile_lock_file = self.root / "compile.lock"
        self.follower_lock_file = self.root / "follower.lock"
        self.history_file = self.root / "keep-history"
        self.unlearned_file = self.root / "no-learn"
        self.login_file = self.root / LOGIN_FILE

    def process_file(self, role: str) -> Path:
        """Where a role (leader, follower) notes its process."""
        return self.root / f"{role}.json"

    def log_file(self, role: str) -> Path:
        """Where a role logs."""
        return self.root / f"{role}.log"

    def prepare(self) -> None:
        """Make the directory and the token; what exists is kept."""
        with self._writing():
            self._make_token()

    def read_token(self) -> str:
        """The token; empty if there is none."""
        return read_token(str(self.root))

    def find_address(self) -> Address | None:
        """Where the follower said it listens."""
        return find_address(str(self.root))

    def write_address(self, address: Address) -> None:
        """Say where the follower listens."""
        fresh = self.address_file.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(address))
        fresh.replace(self.address_file)

    def find_login(self) -> Login | None:
        """Which other server this is the home of a client of."""
        return find_login(str(self.root))

    def check_own(self) -> None:
        """Raise if this is the home of a client of another server's: it has none of its own."""
        login = self.find_login()
        if login is not None:
            raise RejectedError(Reason(Code.LOGGED_IN, login.address.url))

    def write_login(self, login: Login) -> None:
        """Make this the home of a client of another server's; nobody else may read it."""
        with self._writing():
            _write_secret(self.login_file, msgspec.json.encode(login))

    def read_history_ms(self) -> int:
        """For how long jobs that are over are remembered: as somebody said, or 90 days."""
        try:
            return parse_duration(self.history_file.read_text().strip())
        except FileNotFoundError:
            return HISTORY_KEPT_MS
        except (OSError, AmountError, UnicodeDecodeError) as error:
            raise RejectedError(Reason(Code.BAD_SPEC, str(self.history_file), detail=str(error))) from error

    def write_history(self, span_ms: int) -> None:
        """Say for how long; the leader reads it when it starts."""
        fresh = self.history_file.with_suffix(".new")
        fresh.write_text(f"{span_ms}ms\n")
        fresh.replace(self.history_file)

    @property
    def learns(self) -> bool:
        """Whether the follower learns for how long jobs run; it is asked when it starts."""
        return not self.unlearned_file.exists()

    def set_learning(self, wanted: bool) -> None:
        """Say whether it shall."""
        if wanted:
            self.unlearned_file.unlink(missing_ok=True)
        else:
            self.unlearned_file.touch()

    def _make_token(self) -> None:
        if self.read_token():
            return
        _write_secret(self.token_file, os.urandom(32).hex().encode())

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """The directory is there, and the owner's alone."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.root.chmod(0o700)
            yield
        except OSError as error:
            reason = Reason(Code.HOME_UNUSABLE, str(self.root), detail=error.strerror or str(error))
            raise StoreError(reason) from error


def _write_secret(path: Path, data: bytes) -> None:
    """Replace a file by a line that nobody but its owner may read."""
    fresh = path.with_suffix(f".{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data + b"\n")
    fresh.replace(path)
