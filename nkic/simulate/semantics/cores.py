"""Semantics of the rendezvous of a kernel's cores.

Sources: `nki.isa.core_barrier`, `nki.isa.sendrecv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.simulate.decode import Decoded, Rendezvous, rendezvous


@rendezvous("core_barrier")
def core_barrier(decoded: Decoded) -> Rendezvous:
    return Rendezvous(_nothing, _ignore)


def _nothing() -> None:
    """A barrier contributes no data."""


def _ignore(brought: Mapping[int, Any]) -> None:
    """A barrier accepts no data."""


@rendezvous("sendrecv")
def sendrecv(decoded: Decoded) -> Rendezvous:
    dst, src = decoded.tile("dst"), decoded.tile("src")
    sender = decoded.attributes["recv_from_rank"]
    return Rendezvous(
        lambda: src.bits().copy(), lambda brought: dst.put_bits(brought[sender]), source=sender
    )
