"""check: validates every instruction against its row, and every view against its tensor.

`check` takes a program of views, reports all violations of shapes, types, buffers and limits at the
offending arguments, and returns nothing. A program that passes can be lowered. Further checks:

- `warn` reports what is legal but probably unintended;
- `find_edges` reports ordering edges that cannot be waited for;
- `check_rendezvous` reports cores that do not reach the same rendezvous in the same order;
- `find_unwritten` reports reads of uninitialised bytes, in the lowered program;
- `find_unset_registers` does so for registers;
- `find_unread` reports results that nothing reads;
- `find_shared_elements` reports operands of one instruction that share bytes;
- `find_foreign_accumulation` reports matmuls that accumulate onto another instruction's result;
- `find_banks` reports matmul results across PSUM banks, in the program with addresses.

Non-goals: capacity of memories (allocate), rank of access patterns (lower), anything that depends
on run-time values (the runner).
"""

from nkic.check.edges import find_edges
from nkic.check.operands import find_shared_elements
from nkic.check.psum import find_banks, find_foreign_accumulation
from nkic.check.rendezvous import check_rendezvous
from nkic.check.stage import Locate, check, find
from nkic.check.unread import find_unread
from nkic.check.unset import find_unset_registers
from nkic.check.unwritten import find_unwritten
from nkic.check.warnings import warn

__all__ = [
    "Locate",
    "check",
    "check_rendezvous",
    "find",
    "find_banks",
    "find_edges",
    "find_foreign_accumulation",
    "find_shared_elements",
    "find_unread",
    "find_unset_registers",
    "find_unwritten",
    "warn",
]
