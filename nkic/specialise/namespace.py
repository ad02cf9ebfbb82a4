"""Namespaces: the modules that nkic provides, as kernels see them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nkic.base.diagnostics import Label
from nkic.base.source import Span
from nkic.base.suggest import did_you_mean
from nkic.specialise.errors import KernelError


class Absent(NamedTuple):
    """What to say where a kernel asks for a name that a module does not have."""

    slug: str
    text: str
    help: str


class Namespace:
    """A provided module. Its contents are attributes; they can be read and nothing else.

    `absent` is about names that other versions of NKI have, or other modules of this name.
    `lazy` makes a value when it is first asked for, `watched` each time, for names that are
    deprecated. `advice` is for names that nothing is known of, `elsewhere` for names of others.
    """

    def __init__(
        self,
        name: str,
        contents: Mapping[str, Any],
        absent: Mapping[str, Absent] | None = None,
        lazy: Mapping[str, Callable[[], Any]] | None = None,
        watched: Mapping[str, Callable[[], Any]] | None = None,
        advice: str = "",
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self.__dict__.update(contents)
        self.__dict__["@name"] = name
        self.__dict__["@absent"] = dict(absent or {})
        self.__dict__["@lazy"] = dict(lazy or {})
        self.__dict__["@watched"] = dict(watched or {})
        self.__dict__["@advice"] = advice
        self.__dict__["@elsewhere"] = elsewhere or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python's own protocols ask for these
        if name in self.__dict__["@watched"]:
            return self.__dict__["@watched"][name]()
        make = self.__dict__["@lazy"].get(name)
        if make is None:
            raise self._missing(name)
        value = self.__dict__[name] = make()
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise KernelError(
            "hidden-attribute",
            f"`{self.__dict__['@name']}.{name}` cannot be assigned",
            help="keep the value in a variable of your own",
        )

    def __repr__(self) -> str:
        return f"<module '{self.__dict__['@name']}'>"

    def _missing(self, name: str) -> KernelError:
        module = self.__dict__["@name"]
        known: Absent | None = self.__dict__["@absent"].get(name)
        if known is not None:
            return Missing(known.slug, known.text, name, known.help)
        text = f"`{module}` has no `{name}`"
        near = self.__dict__["@elsewhere"].get(name) or did_you_mean(name, names_of(self))
        return Missing("unknown-attribute", text, name, near or self.__dict__["@advice"])


def missing(namespace: Namespace, name: str) -> KernelError | None:
    """The error that asking for a name would give; None if it is there, or hidden."""
    contents = namespace.__dict__
    known = name in contents or name in contents["@lazy"] or name in contents["@watched"]
    return None if known or name.startswith("_") else namespace._missing(name)


class Missing(KernelError, AttributeError):
    """A name that a module does not have; `hasattr` and `getattr` with a default catch it."""

    def __init__(self, slug: str, message: str, name: str, help: str) -> None:
        KernelError.__init__(self, slug, message, help=help)
        self.name = name


def submodule(parent: Namespace, name: str) -> Absent:
    """What to say of a module that `parent` does not have."""
    known: Absent | None = parent.__dict__["@absent"].get(name)
    text = f"`{parent.__dict__['@name']}` has no module `{name}`"
    return known or Absent("import-failed", text, did_you_mean(name, names_of(parent)))


def names_of(namespace: Namespace) -> list[str]:
    """What a namespace contains, in order."""
    contents = namespace.__dict__
    found = {*contents, *contents["@lazy"], *contents["@watched"]}
    return sorted(name for name in found if not name.startswith(("_", "@")))


def has_name(namespace: Namespace, name: str) -> bool:
    """Whether `from … import *` of the namespace gives `name`."""
    contents = namespace.__dict__
    made = (*contents["@lazy"], *contents["@watched"])
    return not name.startswith(("_", "@")) and (name in contents or name in made)


class HostValue:
    """A module that is not kernel source, or what is imported from one.

    It may be imported and stored; everything else that a kernel does with it is an error, which
    `absent` words where more is known of it. `at` is the import.
    """

    def __init__(
        self, name: str, imported: str, absent: Absent | None = None, at: Span | None = None
    ) -> None:
        self.__dict__["@name"] = name
        self.__dict__["@imported"] = imported
        self.__dict__["@absent"] = absent
        self.__dict__["@at"] = at

    def _refuse(self, *_: Any, **__: Any) -> Any:
        known: Absent | None = self.__dict__["@absent"]
        at: Span | None = self.__dict__["@at"]
        if known is not None:
            raise KernelError(known.slug, known.text, help=known.help, span=at)
        labels = [Label(at, "imported here")] if at is not None else []
        raise _host_error(self.__dict__["@name"], self.__dict__["@imported"], labels)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()

    def __repr__(self) -> str:
        return f"<host module '{self.__dict__['@name']}'>"

    def __mro_entries__(self, bases: Any) -> Any:
        return self._refuse()

    __setattr__ = __call__ = __getitem__ = __iter__ = __bool__ = __len__ = _refuse
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _refuse
    __neg__ = __int__ = __float__ = __index__ = __enter__ = __or__ = __ror__ = _refuse
    __hash__ = object.__hash__
    __exit__ = None


def _host_error(name: str, imported: str, labels: Sequence[Label]) -> KernelError:
    if imported.startswith("."):
        text, help = f"there is no file for the module `{imported}`", "check the path of the import"
        return KernelError("import-failed", text, help=help, labels=labels)
    root = imported.partition(".")[0]
    text = f"`{name}` belongs to the module `{root}`, which kernels cannot use"
    help = _INSTEAD.get(root, "")
    if root in sys.stdlib_module_names:
        help = help or "move the work to host code and pass the result in"
    elif not help:
        text = f"there is no source for the module `{root}`"
        text += f", which has `{name}`" if name != root else ""
        help = (
            "if it is kernel source, add the folder that it is in with `--include`; if it is "
            "host code, pass its result to the kernel as an argument"
        )
    return KernelError("host-module", text, help=help, labels=labels)


_INSTEAD = {
    "torch": "pass tensors as arguments; use `nl` dtypes and `nisa` instructions on them",
    "jax": "pass tensors as arguments; use `nl` dtypes and `nisa` instructions on them",
    "os": "pass settings as arguments: a kernel's code depends on nothing else",
    "time": "use the simulator's cycles: a kernel's code cannot depend on the clock",
    "random": "pass random data in, or use `nl.rand` for numbers made on the device",
    "logging": "use `print`: it shows compile-time values",
    "sys": "pass settings as arguments; use `print` for messages",
    "itertools": "write the loops out, or use comprehensions with several `for`",
    "operator": "write the operator out in a small function",
    "collections": "use a dict, a list or a dataclass",
    "copy": "make a new list with `list(x)`, or a new object with `dataclasses.replace`",
    "warnings": "use `print`",
    "inspect": "pass what you need to know as an argument",
}
