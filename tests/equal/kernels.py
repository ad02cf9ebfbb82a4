"""Short kernels, as the lines between loading x and w and storing `out`."""

from __future__ import annotations

from functools import lru_cache
from textwrap import dedent, indent

import nkic
from nkic.base.levels import Settings, Wish
from nkic.base.source import SourceFile
from nkic.simulate.field.decide import Equality, equal

_KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def k(x_hbm, w_hbm):
    x, w = nl.load(x_hbm), nl.load(w_hbm)
{body}
    cores, core = nl.num_programs(0), nl.program_id(0)
    shape = (cores, *out.shape) if cores > 1 else out.shape
    y = nl.ndarray(shape, dtype=out.dtype, buffer=nl.shared_hbm)
    nl.store(y[core] if cores > 1 else y, out)
    return y
"""
QUIET = Settings(dict.fromkeys(("NKI0531", "NKI0532", "NKI0702"), Wish.ALLOW))
TYPE = "float32[24,32]"


@lru_cache(maxsize=512)
def compiled(body: str, x: str = TYPE, w: str = TYPE) -> nkic.Artifact:
    """Return the compiled kernel of some lines, on two cores if they name `program_id`."""
    source = SourceFile("k.py", _KERNEL.format(body=indent(dedent(body).strip("\n"), "    ")))
    return nkic.compile(
        source,
        name="k",
        inputs={"x_hbm": x, "w_hbm": w},
        levels=QUIET,
        target="trn3" if "_mx(" in body else "trn2",
        lnc=2 if "program_id" in body else 1,
    )


def answer(first: str, second: str, x: str = TYPE, w: str = TYPE, seed: int = 0) -> Equality:
    """Return the answer for two kernels of the same types."""
    one, two = compiled(first, x, w), compiled(second, x, w)
    return equal(one.executable, two.executable, seed=seed)
