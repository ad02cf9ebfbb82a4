"""--fuzz-order: check that the outputs depend only on the file's semaphores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nkic.base.diagnostics import Diagnostic, bad_value
from nkic.base.text import clean, plural
from nkic.cli.common import Session
from nkic.neff.records import Executable
from nkic.simulate import RunOptions
from nkic.simulate.debug.fuzz import Arrays, Fuzz
from nkic.simulate.debug.orders import Drawn
from nkic.simulate.debug.raced import diagnostic

MAX_ORDERS = 1_000_000


def parsed(text: str) -> tuple[int, int]:
    """Return the numbers in `N[:SEED]`. Raises `UsageFailed`."""
    count, _, seed = text.partition(":")
    if not count.isdigit() or not 1 <= int(count) <= MAX_ORDERS or not (seed or "0").isdigit():
        message = f"--fuzz-order {clean(text)}: expected N, or N:SEED, with N up to {MAX_ORDERS:,}"
        raise bad_value(message, "for example --fuzz-order 100")
    return int(count), int(seed or 0)


def fuzz(
    session: Session,
    executable: Executable,
    inputs: Sequence[Arrays],
    options: RunOptions,
    wanted: str,
) -> list[Diagnostic]:
    """Run other orders, and return the error for the first one with other outputs."""
    count, seed = parsed(wanted)
    race = Fuzz(executable, inputs, options, seed).search(count)
    if race is not None:
        return [diagnostic(executable, race, seed)]
    kinds = Counter(Drawn(seed, number).transfers.value for number in range(count))
    shares = ", ".join(f"{orders} with {kind} DMA" for kind, orders in kinds.items())
    text = f"--fuzz-order: {plural(count, 'other order')} of seed {seed} ({shares}): same outputs"
    session.tell("fuzz-order", text, orders=count, seed=seed, **kinds)
    return []
