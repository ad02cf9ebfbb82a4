"""Constants of the request as the kernel gets them: dotted names become what they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.source import NOWHERE
from nkic.base.suggest import did_you_mean
from nkic.machine import dtypes
from nkic.specialise.evaluate import Evaluator
from nkic.specialise.literals import DottedName
from nkic.specialise.live import Live
from nkic.specialise.namespace import Namespace, names_of
from nkic.specialise.rebuild import Rebuilder
from nkic.syntax import nodes

SHORT = {"nl": "nki.language", "nisa": "nki.isa"}


class Constants:
    """Looks names up among dtypes, then in NKI's modules, then in the kernel's own file."""

    def __init__(
        self, spaces: Mapping[str, Namespace], evaluator: Evaluator, rebuilder: Rebuilder
    ) -> None:
        self.spaces = spaces
        self.evaluator = evaluator
        self.rebuilder = rebuilder

    def value(self, argument: str, given: Any) -> Any:
        """The value of an argument; raises `UsageFailed` for a name that means nothing."""
        if isinstance(given, Live):
            return self.rebuilder.value(given)
        if isinstance(given, DottedName):
            return self._named(argument, given.text)
        if isinstance(given, list):
            return [self.value(argument, part) for part in given]
        if isinstance(given, tuple):
            return tuple(self.value(argument, part) for part in given)
        if isinstance(given, dict):
            return {key: self.value(argument, part) for key, part in given.items()}
        return given

    def _named(self, argument: str, text: str) -> Any:
        dtype = dtypes.find(text)
        if dtype is not None:
            return dtype
        path, _, last = text.rpartition(".")
        space = self.spaces.get(SHORT.get(path, path))
        if space is not None:
            if last not in names_of(space):
                raise _unknown(argument, text, did_you_mean(last, names_of(space)))
            return getattr(space, last)
        first, *rest = text.split(".")
        bindings = self.evaluator.resolved.kernel.module.bindings
        if first not in bindings:
            raise _unknown(argument, text, did_you_mean(first, (*bindings, *dtypes.DTYPES)))
        expression: nodes.Expression = nodes.Name(NOWHERE, first)
        for name in rest:
            expression = nodes.Attribute(NOWHERE, expression, name)
        return self.evaluator.value(expression)


def _unknown(argument: str, text: str, near: str) -> UsageFailed:
    return UsageFailed(
        [
            make(
                "bad-argument",
                f"argument `{argument}`: `{text}` is no literal, and no name of NKI or of the "
                "kernel's file",
                help=near or f"text is quoted: --const {argument}='\"{text}\"'",
            )
        ]
    )
