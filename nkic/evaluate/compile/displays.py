"""Compile displays and f-strings to closures."""

from __future__ import annotations

from typing import Any

from nkic.evaluate.code import AT, MACHINE, Evaluate, Frame
from nkic.evaluate.compile import expressions
from nkic.evaluate.compile.expressions import Expressions
from nkic.evaluate.texts import converted, formatted
from nkic.syntax import nodes

_BYTES_PER_ELEMENT = 2  # steps for the eight bytes of an element
_DISPLAY = 14  # steps for the bytes of an empty list or tuple


class Displays(Expressions):
    """The compiler for the displays of one unit."""

    def tuple(self, node: nodes.Tuple) -> Evaluate:
        """Compile `a, b`."""
        self.unit.cost += _DISPLAY + _BYTES_PER_ELEMENT * len(node.elts)
        if any(isinstance(element, nodes.Starred) for element in node.elts):
            parts = self.sequence(node.elts)
            return lambda f: tuple(parts(f))
        return self.together(node.elts, self.expressions(node.elts))

    def list(self, node: nodes.List) -> Evaluate:
        """Compile `[a, b]`."""
        self.unit.cost += _DISPLAY + _BYTES_PER_ELEMENT * len(node.elts)
        if any(isinstance(element, nodes.Starred) for element in node.elts):
            return self.sequence(node.elts)
        parts = self.expressions(node.elts)
        return lambda f: [part(f) for part in parts]

    def set(self, node: nodes.Set) -> Evaluate:
        """Compile `{a, b}`."""
        parts = self.sequence(node.elts)

        def make(f: Frame) -> Any:
            values = parts(f)
            f[AT] = node
            return f[MACHINE].make_set(values)

        return make

    def dict(self, node: nodes.Dict) -> Evaluate:
        """Compile `{key: value}`."""
        self.unit.cost += 25 * len(node.values)
        parts = [
            (None if key is None else self.expression(key), self.expression(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]

        def make(f: Frame) -> dict[Any, Any]:
            entries: dict[Any, Any] = {}
            for key, value in parts:
                if key is None:
                    mapping = value(f)
                    f[AT] = node
                    f[MACHINE].merge(entries, mapping)
                    continue
                name = key(f)
                content = value(f)
                if name.__class__ is not str:
                    f[AT] = node
                    f[MACHINE].check_key(name, len(entries))
                entries[name] = content
            return entries

        return make

    def fstring(self, node: nodes.JoinedStr) -> Evaluate:
        """Compile an f-string."""
        parts = [self._part(part) for part in node.values]

        def make(f: Frame) -> str:
            texts = [part(f) for part in parts]
            f[AT] = node
            size = sum(map(len, texts))
            f[MACHINE].text(size)
            return "".join(texts)

        return make

    def _part(self, node: nodes.Constant | nodes.FormattedValue) -> Evaluate:
        return self.constant(node) if isinstance(node, nodes.Constant) else self.fstring_field(node)

    def fstring_field(self, node: nodes.FormattedValue) -> Evaluate:
        """Compile `{value!conversion:format_spec}`."""
        value, conversion = self.expression(node.value), node.conversion
        spec = None if node.format_spec is None else self.fstring(node.format_spec)

        def make(f: Frame) -> str:
            shown = value(f)
            if spec is None and not conversion:
                if shown.__class__ is str:
                    return shown
                f[AT] = node.value
                return formatted(f[MACHINE], shown, "")
            form = "" if spec is None else spec(f)
            f[AT] = node.value
            return converted(f[MACHINE], shown, conversion, form)

        return make


expressions._COMPILERS |= {
    nodes.Tuple: Displays.tuple,
    nodes.List: Displays.list,
    nodes.Set: Displays.set,
    nodes.Dict: Displays.dict,
    nodes.JoinedStr: Displays.fstring,
    nodes.FormattedValue: Displays.fstring_field,
}
