"""`range` and `slice`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.base.device import DeviceBound, DeviceRange
from nkic.evaluate.objects import Class
from nkic.evaluate.tables import builtin_class, getter, method
from nkic.evaluate.types.shared import call_host, check_call, check_owner, constructor

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

RANGE = builtin_class("range", range)
SLICE = builtin_class("slice", slice)


@constructor(RANGE)
def make_range(m: Machine, cls: Class, /, *args: Any, **named: Any) -> range | DeviceRange:
    """Return `range(stop)` or `range(start, stop, step)`, or a loop on the device.

    Raises if the range is too long to iterate over.
    """
    check_call("range", args, named, 1, 3)
    for arg in args:
        if isinstance(arg, DeviceBound):
            return arg.counted(args)
    values = range(*(arg if arg.__class__ is int else _bound(m, arg) for arg in args))
    reach = abs(values.stop - values.start)  # `len` overflows for the largest ranges
    m.allow_length(-(-reach // abs(values.step)) if values else 0, "the range")
    return values


def _bound(m: Machine, value: Any) -> int:
    if hasattr(value, "refuse"):
        value.refuse()
    return int(call_host(m, m.index, (value,)))


def _scanned(m: Machine, values: range, item: Any) -> None:
    if item.__class__ is not int and item.__class__ is not bool:
        m.charge(16 * len(values))


@method(RANGE, "index")
def _index(m: Machine, values: range, item: Any, /) -> int:
    check_owner(m, values, range, "index")
    _scanned(m, values, item)
    return range.index(values, item)


@method(RANGE, "count")
def _count(m: Machine, values: range, item: Any, /) -> int:
    check_owner(m, values, range, "count")
    _scanned(m, values, item)
    return range.count(values, item)


getter(RANGE, "start")(lambda m, values: values.start)
getter(RANGE, "stop")(lambda m, values: values.stop)
getter(RANGE, "step")(lambda m, values: values.step)


# ---- slice --------------------------------------------------------------------------------------


@constructor(SLICE)
def make_slice(m: Machine, cls: Class, /, *args: Any, **named: Any) -> slice:
    """Return `slice(stop)`. Nested slices are refused: freeing them overflows the C stack."""
    check_call("slice", args, named, 1, 3)
    if any(isinstance(arg, slice) for arg in args):
        raise TypeError("slice bounds cannot be slices")
    m.allocate(56)
    return slice(*args)


@method(SLICE, "indices")
def _indices(m: Machine, bounds: slice, length: Any, /) -> Any:
    check_owner(m, bounds, slice, "indices")
    return call_host(m, slice.indices, (bounds, m.index(length)))


getter(SLICE, "start")(lambda m, bounds: bounds.start)
getter(SLICE, "stop")(lambda m, bounds: bounds.stop)
getter(SLICE, "step")(lambda m, bounds: bounds.step)
