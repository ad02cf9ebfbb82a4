"""`nl.loop_reduce`: a result that is folded over the iterations of a loop.

`t[...] = nl.loop_reduce(x, op=np.add, loop_indices=[k])` becomes `t[...] = nl.copy(x)` in the first
iteration and `t[...] = nl.add(t[...], x)` in the others. Source: nki.language.loop_reduce, SDK
2.26.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from nkic.language.versions import rewritten
from nkic.migrate.arguments import find, is_plain, mask_argument
from nkic.migrate.beta1.indices import Indices, code
from nkic.migrate.sheet import Sheet

REDUCE = "nki.language.loop_reduce"
_PARAMETERS = ("x", "op", "loop_indices")
_RANGES = ("affine_range", "sequential_range", "static_range")
_IDENTITY = {"add", "multiply", "maximum", "minimum"}


class Folds:
    """Writes such statements."""

    def __init__(self, sheet: Sheet, indices: Indices) -> None:
        self.sheet = sheet
        self.indices = indices

    def written(self, old: cst.SimpleStatementLine, new: cst.SimpleStatementLine) -> Any:
        """Return the statements that replace a fold.

        Returns None for others, and if the first iteration cannot be determined.
        """
        was, now = old.body[0], new.body[0]
        if not isinstance(was, cst.Assign) or not isinstance(now, cst.Assign):
            return None
        call, rewritten_call = was.value, now.value
        if not isinstance(call, cst.Call) or not isinstance(rewritten_call, cst.Call):
            return None
        target = now.targets[0].target
        if self.sheet.name_of(call.func) != REDUCE or not isinstance(target, cst.Subscript):
            return None
        operator, first = self._operator(call), self._first(call)
        if not operator or not first or not is_plain(call) or not self._is_kept(call, was):
            return None
        value = find(rewritten_call, _PARAMETERS, "x")
        assert value is not None
        return self._lines(new, target, value.value, operator, first)

    def _lines(
        self,
        line: cst.SimpleStatementLine,
        target: cst.Subscript,
        value: cst.BaseExpression,
        operator: str,
        first: str,
    ) -> cst.If:
        language = code(self.sheet.nl("copy")).rpartition(".")[0]
        place, text = code(target), code(value)
        copied = cst.parse_statement(f"{place} = {language}.copy({text})")
        folded = cst.parse_statement(f"{place} = {language}.{operator}({place}, {text})")
        return cst.If(
            cst.parse_expression(first),
            cst.IndentedBlock([copied]),
            cst.Else(cst.IndentedBlock([folded])),
            leading_lines=line.leading_lines,
        )

    def _operator(self, call: cst.Call) -> str:
        arg = find(call, _PARAMETERS, "op")
        name = self.sheet.name_of(arg.value).rpartition(".")[2] if arg is not None else ""
        today = rewritten.OPERATORS.get(name, name)
        return today if today in _IDENTITY else ""

    def _first(self, call: cst.Call) -> str:
        """Return the condition for the first iteration of the folded loops."""
        arg = find(call, _PARAMETERS, "loop_indices")
        if arg is None or not isinstance(arg.value, cst.List | cst.Tuple):
            return ""
        names = [element.value for element in arg.value.elements]
        loops = [self._counts(call, name) for name in names]
        return " and ".join(f"{code(name)} == 0" for name in names) if all(loops) else ""

    def _counts(self, call: cst.Call, name: cst.BaseExpression) -> bool:
        """Whether the name counts a loop around the call from 0."""
        for parent in self.sheet.parents(call):
            if isinstance(parent, cst.For) and code(parent.target) == code(name):
                head = parent.iter
                is_range = isinstance(head, cst.Call) and len(head.args) == 1
                function = self.sheet.name_of(head.func) if isinstance(head, cst.Call) else ""
                return is_range and function.rpartition(".")[2] in _RANGES
        return False

    def _is_kept(self, call: cst.Call, part: cst.Assign) -> bool:
        """Whether the call has no mask, and its sum has the element type of the target."""
        if mask_argument(call) is not None:
            return False
        tensors = self.sheet.tensors(call)
        target = part.targets[0].target
        name = target.value if isinstance(target, cst.Subscript) else None
        dtypes = {
            t.dtype
            for tensors_at in self.sheet.facts.tensors.values()
            for t in tensors_at
            if isinstance(name, cst.Name) and t.name == name.value
        }
        return len(dtypes) == 1 and {tensor.dtype for tensor in tensors} <= dtypes
