"""--fuzz-order: check that the outputs depend only on the file's semaphores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nkic.base.diagnostics import Diagnostic
from nkic.base.text import plural
from nkic.cli.common import Session
from nkic.neff.records import Executable
from nkic.simulate import RunOptions
from nkic.simulate.debug.fuzz import Arrays, Fuzz
from nkic.simulate.debug.orders import Drawn
from nkic.simulate.debug.raced import diagnostic


def fuzz(
    session: Session,
    executable: Executable,
    inputs: Sequence[Arrays],
    options: RunOptions,
    count: int,
    seed: int,
) -> list[Diagnostic]:
    """Run `count` other orders, and return the error for the first one with other outputs."""
    race = Fuzz(executable, inputs, options, seed).search(count)
    if race is not None:
        return [diagnostic(executable, race, seed)]
    kinds = Counter(Drawn(seed, number).transfers.value for number in range(count))
    shares = ", ".join(f"{orders} with {kind} DMA" for kind, orders in kinds.items())
    text = f"--fuzz-order: {plural(count, 'other order')} of seed {seed} ({shares}): same outputs"
    session.tell("fuzz-order", text, orders=count, seed=seed, **kinds)
    return []
