"""What translated kernel code calls in place of Python's own operators and attribute access.

Only where the plain operation could leave the closed world, run for ever or fill the memory;
everything else stays Python. Names as `HOOKS` lists them cannot be written in source.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from operator import index
from types import FunctionType, MethodType
from typing import Any

from nkic.specialise import objects
from nkic.specialise.budget import Budget
from nkic.specialise.errors import KernelError
from nkic.specialise.hooks import DeviceCondition, DeviceRange
from nkic.specialise.kinds import Kinds
from nkic.specialise.methods import Methods
from nkic.specialise.namespace import Namespace
from nkic.specialise.nesting import VIEWS, Nesting
from nkic.specialise.texts import Texts
from nkic.syntax import names

_SMALL = 1 << 128
_NUMBERS = frozenset({int, float, bool})
_SIZED = (str, list, tuple, bytes)
_SCANNED = (*_SIZED, range, *VIEWS)
_JOINED: Any = (set, frozenset, dict, type({}.keys()), type({}.items()), list, tuple)
_OPEN = object()  # stands for a device loop whose body is being evaluated
# Special methods of Python's own types that do little, whatever the object.
_HARMLESS = frozenset(
    f"__{name}__" for name in ["init", "len", "bool", "iter", "next", "call", "enter", "exit"]
)


class Guards:
    """The guards of one evaluation."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._limits = budget.limits
        self.texts = Texts(budget, self.attribute)
        self.nesting = Nesting(budget)
        self.kinds = Kinds({})
        self._methods = Methods(budget, self.texts, self.nesting)

    # ---- operators -------------------------------------------------------------------------

    def multiply(self, left: Any, right: Any) -> Any:
        """`left * right`."""
        if left.__class__ is int and right.__class__ is int:
            result = left * right
            return result if -_SMALL < result < _SMALL else self._integer(result)
        if isinstance(left, _SIZED) or isinstance(right, _SIZED):
            self._check_repeat(left, right)
        return left * right

    def _check_repeat(self, left: Any, right: Any) -> None:
        sequence, times = (left, right) if isinstance(left, _SIZED) else (right, left)
        if hasattr(times, "__index__"):
            length = len(sequence) * index(times)
            self._budget.allow_length(length, f"the {type(sequence).__name__}")
            self._budget.copied(length)

    def add(self, left: Any, right: Any) -> Any:
        """`left + right`."""
        result = left + right
        if result.__class__ is int:
            return result if -_SMALL < result < _SMALL else self._integer(result)
        return result if result.__class__ in _NUMBERS else self._sized(result)

    def _integer(self, result: int) -> int:
        self._budget.allow_bits(result.bit_length())
        return result

    def _sized(self, result: Any) -> Any:
        if isinstance(result, _SIZED):
            self._budget.allow_length(len(result), f"the {type(result).__name__}")
            self._budget.copied(len(result))
        return result

    def modulo(self, left: Any, right: Any) -> Any:
        """`left % right`."""
        if isinstance(left, str):
            return self.texts.percent(left, right)
        return left % right

    def power(self, left: Any, right: Any, modulus: Any = None) -> Any:
        """`left ** right` and `pow`."""
        if modulus is not None:
            return self._modular_power(left, right, modulus)
        if isinstance(left, int) and isinstance(right, int) and right > 0:
            self._budget.allow_bits((left.bit_length() - 1) * right)
        return left**right

    def _modular_power(self, left: Any, right: Any, modulus: Any) -> Any:
        """A product of numbers of the modulus' size for every bit of the exponent."""
        if isinstance(right, int) and isinstance(modulus, int):
            words = 1 + (modulus.bit_length() >> 6)
            self._budget.charge(right.bit_length() * words * words >> 6)
        return pow(left, right, modulus)

    def shift(self, left: Any, right: Any) -> Any:
        """`left << right`."""
        if isinstance(left, int) and isinstance(right, int):
            self._budget.allow_bits(left.bit_length() + right)
        return left << right

    def add_in_place(self, left: Any, right: Any) -> Any:
        """`left += right`."""
        if isinstance(left, list):
            return self._methods.extend_list(left, right)
        if left.__class__ is int:
            return self.add(left, right)
        left += right
        return self._sized(left)

    def multiply_in_place(self, left: Any, right: Any) -> Any:
        """`left *= right`."""
        if left.__class__ is int:
            return self.multiply(left, right)
        if isinstance(left, _SIZED):
            self._check_repeat(left, right)
        left *= right
        return left

    def modulo_in_place(self, left: Any, right: Any) -> Any:
        """`left %= right`."""
        if isinstance(left, str):
            return self.texts.percent(left, right)
        left %= right
        return left

    def power_in_place(self, left: Any, right: Any) -> Any:
        """`left **= right`."""
        if isinstance(left, int):
            return self.power(left, right)
        left **= right
        return left

    def shift_in_place(self, left: Any, right: Any) -> Any:
        """`left <<= right`."""
        if isinstance(left, int):
            return self.shift(left, right)
        left <<= right
        return left

    def joining(self, operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """An operator that numbers have and sets or dicts, which it goes through."""

        def call(left: Any, right: Any) -> Any:
            if left.__class__ not in _NUMBERS and isinstance(left, _JOINED):
                self._budget.copied(len(left) + (len(right) if isinstance(right, _JOINED) else 0))
            result = operator(left, right)
            if result.__class__ is int and not -_SMALL < result < _SMALL:
                return self._integer(result)
            return result

        return call

    def cut(self, owner: Any, bounds: slice) -> Any:
        """`owner[lower:upper:step]`."""
        result = owner[bounds]
        if isinstance(result, _SIZED):
            self._budget.copied(len(result))
        return result

    def store(self, owner: Any, key: Any, value: Any) -> None:
        """`owner[key] = value`, where the key may be a slice."""
        if isinstance(owner, list) and isinstance(key, slice):
            value = list(value)
            self._budget.allow_length(len(owner) + len(value), "the list")
            self._budget.copied(len(value) + (len(owner) >> 5))  # what stands after it moves
        owner[key] = value

    def remove(self, owner: Any, key: Any) -> None:
        """`del owner[key]`, which moves what stands after it."""
        if isinstance(owner, list):
            self._budget.copied(len(owner) >> 5)
        del owner[key]

    def contains(self, item: Any, container: Any) -> bool:
        """`item in container`."""
        if item.__class__ not in _NUMBERS:
            self.nesting.compared(item)
        if isinstance(container, _SCANNED):
            self._budget.copied(len(container))
        return item in container

    def spread(self, values: Any) -> Any:
        """What stands after `*` or `**` in a call, or is taken apart by a `*` target."""
        if isinstance(values, (*_SIZED, range)):
            self._budget.charge(len(values) >> 1)
        elif isinstance(values, dict | set | frozenset):
            self._budget.charge(len(values))
        return values

    def sized(self, value: Any) -> Any:
        """A list, tuple, set or dict display with `*` in it."""
        self._budget.allow_length(len(value), f"the {type(value).__name__}")
        self._budget.copied(len(value))
        return value

    # ---- attributes ------------------------------------------------------------------------

    def attribute(self, owner: Any, name: Any) -> Any:
        """`owner.name`, where the name is private, special or computed."""
        if not isinstance(name, str) or not name.isidentifier():
            raise TypeError(f"attribute name must be a name, not {name!r}")
        if names.is_hidden(name):
            raise hidden(name)
        if name.startswith("_"):
            return self._private(owner, name)
        guarded = self._methods.find(owner, name)
        return getattr(owner, name) if guarded is None else guarded

    def _private(self, owner: Any, name: str) -> Any:
        if _is_kernels(owner) or isinstance(owner, super | KernelValue):
            return self._own_special(getattr(owner, name), name)
        if name in ("__name__", "__qualname__", "__doc__", "__class__", "__members__"):
            return self.kinds.of(getattr(owner, name))
        if names.is_special(name):
            return self._own_special(getattr(owner, name), name)
        raise KernelError(
            "hidden-attribute",
            f"`{name}` of {_kind(owner)} is private",
            help="use the public methods and fields of the object",
        )

    def _own_special(self, value: Any, name: str) -> Any:
        """Special methods of Python's own types would go round the operators' guards."""
        if name == "__class__":
            return self.kinds.of(value)
        if not names.is_special(name) or name in _HARMLESS:
            return value
        if callable(value) and not isinstance(value, FunctionType | MethodType | type):
            raise hidden(name)
        return value

    def has_attribute(self, owner: Any, name: Any) -> bool:
        """`hasattr`."""
        try:
            self.attribute(owner, name)
        except AttributeError:
            return False
        return True

    def get_attribute(self, owner: Any, name: Any, *default: Any) -> Any:
        """`getattr`."""
        if len(default) > 1:
            raise TypeError(f"getattr expected at most 3 arguments, got {2 + len(default)}")
        try:
            return self.attribute(owner, name)
        except AttributeError:
            if default:
                return default[0]
            raise

    def set_attribute(self, owner: Any, name: Any, value: Any) -> None:
        """`owner.name = value`."""
        self._check_assignable(owner, name)
        setattr(owner, name, value)

    def set_frozen(self, owner: Any, name: Any, value: Any) -> None:
        """`object.__setattr__(owner, name, value)`, which frozen dataclasses need."""
        self._check_assignable(owner, name)
        if isinstance(owner, type):
            raise TypeError("object.__setattr__ takes an instance, not a class")
        object.__setattr__(owner, name, value)

    def delete_attribute(self, owner: Any, name: Any) -> None:
        """`del owner.name`."""
        self._check_assignable(owner, name)
        delattr(owner, name)

    def _check_assignable(self, owner: Any, name: Any) -> None:
        if not isinstance(name, str) or names.is_special(name) or names.is_hidden(name):
            raise hidden(str(name))
        if not _is_kernels(owner):
            raise KernelError(
                "hidden-attribute",
                f"attribute `{name}` of {_kind(owner)} cannot be assigned",
                help="only objects of the kernel's own classes have fields to assign to",
            )

    def finish_class(self, made: type) -> type:
        """Called with every class that kernel code defines, after its decorators."""
        self._budget.charge(len(made.__mro__) ** 2 + objects.work_of_making(made))
        type.__setattr__(made, "__nkic__", self.nesting)
        return objects.finish_class(made)

    # ---- loops and blocks ------------------------------------------------------------------

    def iterate(self, value: Any) -> Any:
        """What a `for` statement goes through."""
        if isinstance(value, DeviceRange):
            return DeviceLoop(value)
        return _iterator(self.in_order(value))

    def each(self, value: Any) -> Any:
        """What a comprehension goes through."""
        if isinstance(value, DeviceRange):
            raise KernelError(
                "device-loop-misuse",
                "a comprehension cannot run on the device",
                help="write a `for` statement, or use `range`",
            )
        return _iterator(self.in_order(value))

    def in_order(self, value: Any) -> Any:
        """What is about to be gone through; a set is sorted for that."""
        if isinstance(value, set | frozenset):
            self._budget.charge(2 * len(value))
        return value

    def condition(self, state: Any, value: Any) -> Any:
        """What a `while` statement tests; `state` is what this gave last, at first None."""
        if value.__class__ is bool and state is not _OPEN:
            return value
        return self._device_condition(state, value)

    def _device_condition(self, state: Any, value: Any) -> Any:
        if not isinstance(value, DeviceCondition):
            if state is _OPEN:
                raise KernelError(
                    "device-loop-misuse",
                    "the condition was a register before the loop and is none after its body",
                )
            return bool(value)
        if state is _OPEN:
            value.leave_while()
            return False
        value.enter_while()
        return _OPEN

    def leave(self, word: str, *loops: Any) -> None:
        """Before `break` or `return` out of `loops`."""
        if any(isinstance(loop, DeviceLoop) or loop is _OPEN for loop in loops):
            raise KernelError(
                "device-loop-misuse",
                f"`{word}` cannot leave a loop that runs on the device",
                help="the loop's body is compiled once; let its range or condition end it",
            )

    def context(self, value: Any) -> Any:
        """What stands after `with`."""
        if isinstance(value, AbstractContextManager) and not _is_kernels(value):
            return value
        raise KernelError(
            "not-in-nki",
            f"`with` does not take {_kind(value)}",
            help="kernel code has one such block: `with nl.no_reorder():`",
        )


def _iterator(value: Any) -> Iterator[Any]:
    """`iter(value)`. Values of ours that have indices but no end cannot be gone through."""
    if not hasattr(value, "__iter__") and not _is_kernels(value):
        raise TypeError(f"'{type(value).__name__}' object is not iterable")
    return iter(value)


def _is_kernels(owner: Any) -> bool:
    """A class that kernel code defines, or an object of one: translation marks them."""
    kind = owner if isinstance(owner, type) else type(owner)
    return "__nkic__" in kind.__dict__


class KernelValue:
    """Base of our own objects whose private names belong to kernel code, such as modules."""

    __slots__ = ()


class DeviceLoop:
    """Goes once through a range that the device goes through."""

    def __init__(self, over: DeviceRange) -> None:
        self._over = over

    def __iter__(self) -> Any:
        yield self._over.enter()
        self._over.leave()


def hidden(name: str) -> KernelError:
    """The error about a name that is out of reach."""
    text = f"`{name}` is out of reach of kernel code"
    return KernelError("hidden-attribute", text, help=names.instead_of(name))


def _kind(value: Any) -> str:
    if isinstance(value, Namespace):
        return f"the module `{value.__dict__['@name']}`"
    if isinstance(value, type):
        return f"the class `{value.__name__}`"
    return f"a value of type `{type(value).__name__}`"


_JOINING: dict[str, Callable[[Any, Any], Any]] = {
    **{"or": operator.or_, "and": operator.and_, "xor": operator.xor, "sub": operator.sub},
    **{"ior": operator.ior, "iand": operator.iand, "ixor": operator.ixor, "isub": operator.isub},
}


def hooks(guards: Guards, budget: Budget) -> dict[str, Callable[..., Any]]:
    """The guards by the names under which translated code calls them."""
    return {
        "@tick": budget.tick,
        "@turns": budget.turns,
        "@mul": guards.multiply,
        "@add": guards.add,
        "@mod": guards.modulo,
        "@pow": guards.power,
        "@shl": guards.shift,
        "@iadd": guards.add_in_place,
        "@imul": guards.multiply_in_place,
        "@imod": guards.modulo_in_place,
        "@ipow": guards.power_in_place,
        "@ishl": guards.shift_in_place,
        **{f"@{name}": guards.joining(function) for name, function in _JOINING.items()},
        "@store": guards.store,
        "@cut": guards.cut,
        "@remove": guards.remove,
        "@bounds": slice,
        "@in": guards.contains,
        "@key": guards.nesting.key,
        "@flat": guards.nesting.compared,
        "@sized": guards.sized,
        "@spread": guards.spread,
        "@.get": guards.attribute,
        "@.set": guards.set_attribute,
        "@.del": guards.delete_attribute,
        "@frozen": guards.set_frozen,
        "@for": guards.iterate,
        "@each": guards.each,
        "@while": guards.condition,
        "@leave": guards.leave,
        "@with": guards.context,
        "@field": guards.texts.field,
        "@format": guards.texts.converted,
        "@text": guards.texts.joined,
    }
