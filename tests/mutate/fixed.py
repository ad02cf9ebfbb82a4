"""Changes that once survived the whole suite.

If a text is no longer in its file, the code has changed, and the entry is an error.
"""

from typing import NamedTuple


class Fixed(NamedTuple):
    """A change of text in a file, and the tests that must fail."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]


EXACT = "tests/unit/test_exact.py"
FIXED = (
    Fixed(
        "the allocation proof ignores neighbours at or above the address",
        "nkic/prove/addresses.py",
        "ranges[max(0, at - 1) : at + 1]",
        "ranges[max(0, at - 1) : at]",
        ("tests/unit/prove/test_prove_addresses.py",),
    ),
    Fixed(
        "no barrier at the start of a loop that a register decides",
        "nkic/compiler/semaphores.py",
        "            self.barrier(self._deciding(loop))\n",
        "            pass\n",
        ("tests/unit/prove/test_prove_order.py", "tests/unit/language/test_device_loops.py"),
    ),
    Fixed(
        "lower's cache of engines is blind to attributes",
        "nkic/compiler/lower.py",
        "key = (row, instruction.attributes, *map(cost_key, instruction.operands))",
        "key = (row, *map(cost_key, instruction.operands))",
        (EXACT,),
    ),
    Fixed(
        "a stationary of 129 columns",
        "nkic/machine/instructions/tensor.py",
        "    if stationary_columns > ARRAY:\n        return too_many(",
        "    if stationary_columns > ARRAY + 1:\n        return too_many(",
        (EXACT,),
    ),
    Fixed(
        "the verifier lets an access end one byte after its tensor",
        "nkic/artifact/verify.py",
        "high > available:",
        "high > available + 1:",
        (EXACT,),
    ),
    Fixed(
        "the verifier lets an access begin one byte before its tensor",
        "nkic/artifact/verify.py",
        "if low < 0 or",
        "if low < -1 or",
        (EXACT,),
    ),
    Fixed(
        "trips are rounded down, by the verifier and the check of rendezvous",
        "nkic/machine/operands.py",
        "max(0, -((start - stop) // step))",
        "max(0, (stop - start) // step)",
        (EXACT,),
    ),
    Fixed(
        "depend sees an update as a write",
        "nkic/program/effects.py",
        "Access.UPDATE: (True, True),",
        "Access.UPDATE: (False, True),",
        (EXACT,),
    ),
    Fixed(
        "the proofs see an update as a write",
        "nkic/prove/effects.py",
        "Access.UPDATE: UPDATE,",
        "Access.UPDATE: WRITE,",
        (EXACT,),
    ),
    Fixed(
        "depend ignores how attributes refine an access",
        "nkic/program/effects.py",
        "= _ordered([row.access_of(o, facts) for o in row.operands])",
        "= _ordered([o.access for o in row.operands])  # of any instance",
        (EXACT,),
    ),
    Fixed(
        "the proofs ignore how attributes refine an access",
        "nkic/prove/effects.py",
        "MODES[row.access(o.name, facts) or o.access]",
        "MODES[o.access]",
        (EXACT,),
    ),
    Fixed(
        "signals take no time in the runner",
        "nkic/machine/timing.py",
        "        return latest + self.semaphore_ps",
        "        return latest",
        (EXACT,),
    ),
    Fixed(
        "every DMA queue has engines of its own in the runner",
        "nkic/machine/timing.py",
        "self.dma_free[core] = start + timing.pool",
        "self.dma_free[core] = start",
        (EXACT,),
    ),
)
