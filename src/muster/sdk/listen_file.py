"""Where the follower of a home listens, and with which certificate, in a file of the home: what `muster up` was last
told, so that the next one, after a crash or a restart, serves the same people in the same way."""

from __future__ import annotations

from pathlib import Path

import msgspec

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason


class ListenFile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The file as JSON; what is left out is as it always was: this machine alone, in the clear."""

    host: str = ""
    tls_cert: str = ""
    tls_key: str = ""

    def words(self) -> list[str]:
        """The same as words of the follower's command line."""
        said = {"--host": self.host, "--tls-cert": self.tls_cert, "--tls-key": self.tls_key}
        return [word for name, value in said.items() if value for word in (name, value)]


def read_listen_file(path: Path) -> ListenFile:
    """The file; one that is not there says nothing, one that cannot be read is refused."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ListenFile)
    except FileNotFoundError:
        return ListenFile()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RejectedError(Reason(Code.BAD_SETTINGS, str(path), detail=str(error))) from error


def write_listen_file(path: Path, content: ListenFile) -> None:
    """Replace the file."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(content) + b"\n")
    fresh.replace(path)
