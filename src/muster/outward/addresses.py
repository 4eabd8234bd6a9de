"""Which addresses the server may speak to on somebody's word: public ones, and those in ranges that an admin named.

Whoever can make a server send a request can otherwise use it to reach what only the server reaches: this machine, its
neighbours, a cloud's metadata. An address is judged as what it leads to: one address may be written inside another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

EVERYWHERE: Final[tuple[Network, ...]] = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))

_TUNNELS: Final = tuple(
    ipaddress.ip_network(each) for each in ("2002::/16", "2001::/32", "64:ff9b::/96", "64:ff9b:1::/48")
)
"""Ways to write an older address inside a newer one; where they lead is not looked into."""


def read_ranges(words: Iterable[str]) -> tuple[Network, ...]:
    """Ranges as an admin writes them; ValueError names the one that is none."""
    return tuple(ipaddress.ip_network(word) for word in words)


def is_allowed(address: Address, allowed: Sequence[Network] = ()) -> bool:
    """Whether the server may speak to an address."""
    plain = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped else address
    if any(plain in network for network in allowed if network.version == plain.version):
        return True
    is_tunnel = any(plain in network for network in _TUNNELS if network.version == plain.version)
    return plain.is_global and not plain.is_multicast and not is_tunnel


def is_loopback(host: str) -> bool:
    """Whether a host, as it is written, is this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
