"""Other orders of a run, which the semaphores of an artifact allow as well."""

from __future__ import annotations

from typing import Unpack

from nkic.api import options
from nkic.api.artifact import Artifact
from nkic.api.errors import RunError, raising
from nkic.api.options import Running
from nkic.api.running import Inputs, run_options, wanted
from nkic.base.diagnostics import ProgramFault
from nkic.simulate.debug.fuzz import Fuzz
from nkic.simulate.debug.raced import diagnostic
from nkic.simulate.io.bind import bind

_OF_ONE_RUN = ("dump", "watch", "expect_at", "rtol", "atol", "max_cycles", "report_error_bound")


def fuzz_order(
    artifact: Artifact,
    inputs: Inputs = None,
    *,
    orders: int = 16,
    seed: int = 0,
    fill: str | None = None,
    cast: bool = False,
    **how: Unpack[Running],
) -> None:
    """Runs a compiled kernel in so many other orders that its semaphores allow, as `nki-run
    --fuzz-order` does. Raises `RunError` with the two lines that race where one of them gives
    other outputs. The same `seed` tries the same orders.
    """
    options.check("fuzz_order", how, Running)
    if ignored := [name for name in _OF_ONE_RUN if how.get(name) is not None]:
        raise TypeError(f"nkic.fuzz_order() has no option {ignored[0]!r}: it is about one run")
    with raising(RunError, artifact.executable.sources.get):
        bound = bind(artifact.signature, wanted(inputs, fill, cast))
        fuzz = Fuzz(artifact.executable, [bound.arrays], run_options(how), seed)
        race = fuzz.search(orders)
        if race is not None:
            raise ProgramFault([diagnostic(artifact.executable, race, seed)])
