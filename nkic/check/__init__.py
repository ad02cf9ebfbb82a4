"""check: every instruction against its row, and every view against its tensor.

Takes a program of views; reports all violations of shapes, types, buffers and limits, each at
the argument that breaks the rule; gives nothing. A program that passes can be lowered, and
`warn` says what it probably does not mean; `find_unwritten` asks the lowered program which
uninitialised bytes are read, `find_strangers` where a matmul adds to what another
instruction wrote. `check_rendezvous` asks whether the cores of a program wait for each other at the
same places, `find_edges` whether what the kernel ordered can be waited for, and `find_banks`, of
the program with addresses, whether results of matmuls lie within one bank of PSUM.

Non-goals: capacity of memories (allocate), rank of access patterns (lower), anything that
depends on run-time values (the runner).
"""

from nkic.check.edges import find_edges
from nkic.check.psum import find_banks, find_strangers
from nkic.check.rendezvous import check_rendezvous
from nkic.check.stage import Locate, check, find
from nkic.check.unwritten import find_unwritten
from nkic.check.warnings import warn

__all__ = [
    "Locate",
    "check",
    "check_rendezvous",
    "find",
    "find_banks",
    "find_edges",
    "find_strangers",
    "find_unwritten",
    "warn",
]
