"""Namespaces: the modules that nkic provides to kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nkic.base.device import KernelError, Missing
from nkic.base.diagnostics import Guess, did_you_mean
from nkic.language.foreign import meant, otherwise


class Absent(NamedTuple):
    """The error for a name that a module does not have."""

    slug: str
    text: str
    help: str


class Namespace:
    """A provided module. Its members are read-only attributes.

    `absent` has errors for names that other versions of NKI, or other modules of this name, have.
    `lazy` makes a value on first access, `watched` on every access, for deprecated names. `advice`
    is the help for unknown names without a near match, `elsewhere` the help for names of other
    modules.
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
            raise AttributeError(name)  # Python protocols probe for these
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
        absent: Absent | None = self.__dict__["@absent"].get(name)
        if absent is not None:
            return Missing(absent.slug, absent.text, name, absent.help)
        text = f"`{module}` has no `{name}`"
        return Missing("unknown-attribute", text, name, lambda: self._nearest(name))

    def _nearest(self, name: str) -> str:
        """Return advice on an unknown name: one of other libraries, then a misspelt one.

        `log2` and `erfc` are close to names that compute something else.
        """
        names = names_of(self)
        if known := meant(name, names) or otherwise(name, names):
            return known
        near, there = suggested(self, name), self.__dict__["@elsewhere"].get(name)
        if there and not (isinstance(near, Guess) and near.sure):
            return str(there)
        return near or str(self.__dict__["@advice"])


def missing(namespace: Namespace, name: str) -> KernelError | None:
    contents = namespace.__dict__
    exists = name in contents or name in contents["@lazy"] or name in contents["@watched"]
    return None if exists or name.startswith("_") else namespace._missing(name)


def submodule(parent: Namespace, name: str) -> Absent:
    absent: Absent | None = parent.__dict__["@absent"].get(name)
    text = f"`{parent.__dict__['@name']}` has no module `{name}`"
    return absent or Absent("import-failed", text, suggested(parent, name))


def suggested(namespace: Namespace, name: str) -> str:
    """Return a `Guess` at the member that `name` means, or ""; deprecated members come last."""
    return did_you_mean(name, names_of(namespace), namespace.__dict__["@watched"])


def names_of(namespace: Namespace) -> list[str]:
    contents = namespace.__dict__
    names = {*contents, *contents["@lazy"], *contents["@watched"]}
    return sorted(name for name in names if not name.startswith(("_", "@")))
