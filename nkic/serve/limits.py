"""What requests may hold, and the error that they get."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one request, of one token and of the service."""

    body: int = 8 << 20  # bytes
    batch: int = 256  # candidates of a request
    token: int = 512  # candidates of a token that are not done
    queue: int = 1024  # candidates that are not done
    slow: float = 30.0  # seconds in which a body must have come
    wait: float = 600.0  # seconds that a request may wait
    kept: int = 256 << 20  # bytes of evaluations that can be asked for again
    grace: float = 30.0  # seconds for what runs when the service is told to end


class Refused(Exception):
    """A request is refused with an HTTP status."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.headers = status, text, headers or {}


def is_here(host: str) -> bool:
    """Whether an address, or a name, is this machine's own in any case."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
