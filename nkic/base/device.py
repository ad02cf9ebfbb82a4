"""Interfaces between the evaluator and device values.

The value classes (registers, ranges with run-time bounds) inherit from these; the evaluator uses
nothing else of them. The body of a device loop is evaluated once: `enter` opens the loop and
`leave` closes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from nkic.base.diagnostics import Label, did_you_mean
from nkic.base.source import Span
from nkic.base.text import plural

# ---- Values compared by identity, which must not be copied --------------------------------------


class Identical:
    """A mixin for objects whose copies are the object itself.

    This applies to `copy.copy`, `copy.deepcopy` and therefore `dataclasses.asdict`. The closed
    world does the same: it copies only containers and the kernel's own objects.
    """

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


# ---- Errors that end the evaluation of a kernel, and that kernel code cannot catch --------------
# They have no position: the evaluator adds it.

SECOND_WAY = (
    "a kernel that a program calls is evaluated by Python itself, and may use all of it: "
    "`python -m nkic program.py`"
)


class KernelError(Exception):
    """The kernel cannot be evaluated further.

    `argument` is the parameter with the wrong value, and `position` its index among positional
    arguments: the message then points at the argument instead of the whole call. `span` is another
    place to point at, such as an import.
    """

    def __init__(
        self,
        slug: str,
        message: str,
        *,
        help: str = "",
        argument: str = "",
        position: int | None = None,
        labels: Sequence[Label] = (),
        notes: Sequence[str] = (),
        span: Span | None = None,
    ) -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.help = help
        self.argument = argument
        self.position = position
        self.labels = tuple(labels)
        self.notes = tuple(notes)
        self.span = span


class Missing(KernelError, AttributeError):
    """A missing attribute of a value; `hasattr` and `getattr` with a default catch it.

    `advise` returns the help. Most of these errors are caught, and looking for a near name is a
    thousand times the work of a look-up: it is done when the error is explained.
    """

    def __init__(self, slug: str, message: str, name: str, advise: str | Callable[[], str]) -> None:
        KernelError.__init__(self, slug, message)
        self.name = name
        self._advise = advise

    @property
    def help(self) -> str:
        """What to do instead."""
        if not isinstance(self._advise, str):
            self._advise = self._advise()
        return self._advise

    @help.setter
    def help(self, text: str) -> None:
        self._advise = text


class WrongFields(KernelError, TypeError):
    """A call of a class that does not fit its fields; `except TypeError` catches it."""

    def __str__(self) -> str:
        return f"{self.message}; {self.help}"

    def __reduce__(self) -> Any:
        return type(self), (self.slug, self.message), self.__dict__


def bind_fields(
    owner: str, names: Sequence[str], values: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values that a call gives an `NKIObject` by field. Raises `WrongFields`."""
    fields = f"its fields are {', '.join(names) or 'none'}"
    if len(values) > len(names):
        text = f"`{owner}` takes {plural(len(names), 'value')}, and {len(values)} were given"
        raise WrongFields("wrong-call", text, help=fields)
    by_name = dict(zip(names, values, strict=False))
    for name, value in named.items():
        if name in by_name:
            text = f"`{owner}` was given two values for its field `{name}`"
            help = "pass it by its place or by its name, not by both"
            raise WrongFields("wrong-call", text, help=help, argument=name)
        if name not in names:
            text, help = f"a `{owner}` has no field `{name}`", did_you_mean(name, names) or fields
            raise WrongFields("wrong-call", text, help=help, argument=name)
        by_name[name] = value
    return by_name


# --------------------------------------------------------------------------------------------------


class DeviceRange(ABC):
    """The iterable of `for i in dynamic_range(…)`."""

    @abstractmethod
    def enter(self) -> object:
        """Open the loop and return the value of its target, the counter register."""

    @abstractmethod
    def leave(self) -> None:
        """Close the loop after its body was evaluated."""


class DeviceBound(ABC):
    """A device value that bounds a device loop: `for i in range(bound)`."""

    @abstractmethod
    def counted(self, bounds: tuple[object, ...]) -> DeviceRange:
        """Return `range(*bounds)`, where this value is one of the bounds."""


class DeviceCondition(ABC):
    """The condition of `while register:`."""

    @abstractmethod
    def enter_while(self) -> None:
        """Open a loop that runs while this register is not zero."""

    @abstractmethod
    def leave_while(self) -> None:
        """Close the loop after its body was evaluated."""


def left_by(keyword: str, span: Span | None = None) -> KernelError:
    """Return the error for `break` or `return` out of a device loop.

    `span` is the position of the statement, if it differs from the current one.
    """
    text = f"`{keyword}` cannot leave a loop that runs on the device"
    return KernelError("device-loop-misuse", text, help=_INSTEAD[keyword], span=span)


_INSTEAD = {
    "break": "the body is compiled once, and a register ends the loop early: "
    "`nl.while_loop(go, body)` runs `body` until the register that it returns is 0; a loop over "
    "`nl.static_range` is unrolled, and may be left",
    "return": "the body is compiled once: keep the result in a tensor made before the loop, and "
    "return it after the loop",
}


class TracedOnce(ABC):
    """The iterable of a `for` loop whose body counts as evaluated once.

    Numbers that the body changes are reset at the start of every iteration.
    """

    @abstractmethod
    def reset(self, name: str) -> None:
        """Called for each variable that has been reset."""
