"""The border between kernels' values and the language's functions, which are Python's own code.

Those functions print, hash and compare what they are given with Python's own operations. So nothing
crosses the border that nests too deep for them, and what crosses is paid for by its size, shared
parts each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nkic.interpret.iteration import KernelFrozenSet, KernelSet, unordered
from nkic.interpret.objects import DictInstance, ListInstance, TupleInstance

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

NESTED: frozenset[Any] = frozenset(
    {list, tuple, dict, set, frozenset, slice, KernelSet, KernelFrozenSet}
    | {ListInstance, TupleInstance, DictInstance}
)
_LONG = frozenset({str, bytes})
_NEST_STEPS = 24  # steps to look into a container, beside its items
_CHARACTERS = 4  # binary logarithm of the characters of a text that cost a step


def admit(m: Machine, values: Iterable[Any]) -> None:
    """Charge for the size of arguments of the language's functions; refuse nests too deep."""
    for value in values:
        kind = value.__class__
        if kind in NESTED:
            m.nested(_admit_nest, m, value)
        elif kind in _LONG:
            m.charge(len(value) >> _CHARACTERS)


def _admit_nest(m: Machine, value: Any) -> None:
    if isinstance(value, dict):
        m.charge(_NEST_STEPS + 2 * dict.__len__(value))
        admit(m, dict.__iter__(value))
        admit(m, dict.values(value))
    elif isinstance(value, slice):
        admit(m, (value.start, value.stop, value.step))
    else:
        m.charge(_NEST_STEPS + len(value))
        kind: Any = next((kind for kind in (list, tuple) if isinstance(value, kind)), None)
        admit(m, unordered(value) if kind is None else kind.__iter__(value))


def admitting(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function `(m, callee, args, named)` for `Machine.callables` with a border."""

    def caller(m: Machine, function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        admit(m, args)
        admit(m, named.values())
        return call(m, function, args, named)

    return caller
