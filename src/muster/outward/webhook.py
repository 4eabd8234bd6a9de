"""A webhook: notices as POST requests, signed, to an address that may be asked.

The signature is an HMAC-SHA256 with the route's secret over the time, a dot and the body, so that whoever hears it
knows who spoke, and when. A receiver answers 2xx; 408, 429 and 5xx are tried again, whatever else is final.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Sequence
from typing import Final

from muster.outward.addresses import Network
from muster.outward.http import ForbiddenError, OutwardError, send
from muster.ports.notifier import NotDeliveredError

PATIENCE_S: Final = 10.0
AGAIN: Final = (408, 425, 429)


class Webhook:
    """The Notifier of one URL. Without a secret nothing is signed."""

    def __init__(
        self, url: str, secret: str = "", allowed: Sequence[Network] = (), patience_s: float = PATIENCE_S
    ) -> None:
        self._url = url
        self._secret = secret.encode()
        self._allowed = allowed
        self._patience_s = patience_s

    def deliver(self, number: str, body: bytes) -> None:
        """Post it once."""
        headers = {"Content-Type": "application/json", "Muster-Notice": number}
        if self._secret:
            now_s = int(time.time())
            headers |= {"Muster-Timestamp": str(now_s), "Muster-Signature": sign(self._secret, now_s, body)}
        try:
            status = send(self._url, self._allowed, "POST", headers, body, self._patience_s).status
        except ForbiddenError as error:
            raise NotDeliveredError(str(error), is_final=True) from error
        except OutwardError as error:
            raise NotDeliveredError(str(error)) from error
        if not 200 <= status < 300:
            raise NotDeliveredError(f"answered {status}", is_final=status < 500 and status not in AGAIN)


def sign(secret: bytes, now_s: int, body: bytes) -> str:
    """The signature of a body that is sent then."""
    return "v1=" + hmac.new(secret, f"{now_s}.".encode() + body, hashlib.sha256).hexdigest()
