"""prove: the audits. From raw addresses, streams and rows alone they find out again what the
stages before them claim, and share no code with these.

    addresses   every tensor inside its memory, no two in use at once sharing a byte
    lines       each instruction once, in its place; semaphores with two ends
    run         the streams run abstractly: no deadlock, and what each instruction knows complete
    order       conflicts in program order: memory, engine state, registers, user edges, regions
    spilled     tiles that wait in HBM: every instruction finds what it found without that
    file        the bytes of the file, read again, hold just that
`effects` and `boxes` read what instructions touch, `ledger` and `tenancy` keep who did last.
`model.RULES` lists everything that is proven.
"""

from nkic.prove.addresses import prove_addresses
from nkic.prove.effects import read
from nkic.prove.file import Sections, prove_file
from nkic.prove.model import RULES, Finding
from nkic.prove.order import prove_order
from nkic.prove.returned import Written, prove_returned, written
from nkic.prove.spilled import prove_spilled

__all__ = [
    "RULES",
    "Finding",
    "Sections",
    "Written",
    "prove_addresses",
    "prove_file",
    "prove_order",
    "prove_returned",
    "prove_spilled",
    "read",
    "written",
]
