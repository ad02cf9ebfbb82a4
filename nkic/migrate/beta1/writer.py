"""Traverse a source of Beta 1 once, and write its replacement for later versions."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

import libcst as cst

from nkic.base.source import Span
from nkic.machine.operands import Row
from nkic.migrate.beta1 import blocks, calls, statements
from nkic.migrate.beta1.blocks import BLOCKS, MAKERS, Blocks, unmarked
from nkic.migrate.beta1.calls import FOLDS, MASKS, declared_result, is_never_called, stated_shape
from nkic.migrate.beta1.calls import rewritten as rewritten_patterns
from nkic.migrate.beta1.indices import ARANGE, MGRID, Index, Indices, added, code
from nkic.migrate.beta1.masks import Cutter, Stairs, Wider, mask_of, shapes_by_name
from nkic.migrate.beta1.results import (
    Hoisting,
    Lookup,
    NoResult,
    Pending,
    PendingCalls,
    Result,
    allocation,
    joined,
    result_of,
)
from nkic.migrate.beta1.slices import (
    NotSlices,
    SeveralAxes,
    counts,
    is_indexed,
    pattern,
    sizes,
    sliced,
    subscript,
    viewed,
)
from nkic.migrate.beta1.statements import added_product, loops_of, moved, stored, under
from nkic.migrate.beta1.traced import (
    Carried,
    Folds,
    Hidden,
    is_traced,
    unreached_result,
    without_return,
)
from nkic.migrate.calls import (
    keyword,
    keyword_of,
    mask_argument,
    shared_outputs,
    whole_numbers,
    with_args,
    with_value,
)
from nkic.migrate.sheet import Sheet, scope_of, walk
from nkic.program.program import View

INDICES, ADDRESSES = "an index expression", "an allocator"
_INDEXING = "slice the tensor, or use t.ap(pattern)"
_MASKING = "slice to the valid part, `t[0:min(128, rows - start)]`"
_PATTERNS = "write the pattern, [[step, count], …]"
_PLACING = "pass address=(partition, byte)"
_RETURNING = "make dst with nl.ndarray, and pass it"
LOAD, AXIS = "nki.language.load", "axis"


class Writer(cst.CSTTransformer):
    """Applies the rules of Beta 1."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self.sheet = sheet
        self.indices = Indices(sheet)
        self.shapes = shapes_by_name(sheet)
        self.blocks = Blocks(self.indices)
        self.pending = PendingCalls()
        self.wider = Wider(sheet, self.indices, self.shapes)
        self.folds = Folds(sheet, self.indices)
        self.carried = Carried(sheet, self.indices)
        self.hidden = Hidden(self.blocks)
        self.stairs = Stairs(self.blocks, self.shapes)
        self._axes: dict[int, list[int]] = {}  # of calls whose axes were moved to the end
        self.cutters: dict[int, Cutter] = {}  # of masked calls, by the original call
        self.skipped: dict[int, Span] = {}  # functions that were not evaluated
        self.moved: dict[int, list[cst.BaseStatement]] = {}  # by the statement after them

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Return the node that replaces an old one, after the tiles that are now made before it."""
        node = super().on_leave(original_node, updated_node)
        before = self.moved.get(id(original_node))
        if not before:
            return node
        nodes = node if isinstance(node, cst.FlattenSentinel) else [node]
        replacements = [new for new in nodes if isinstance(new, cst.CSTNode)]
        return cst.FlattenSentinel([*before, *replacements])

    # ---- indices ----------------------------------------------------------------------

    def leave_Subscript(  # noqa: N802
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        """Rewrite `t[i_p, i_f]`."""
        old = original_node
        if self._is_grid(old) or self._is_in_masked(old):
            return updated_node
        blocks, indexed = self.blocks.count(old), is_indexed(self.indices, old)
        texts = [code(element.slice) for element in updated_node.slice]
        if indexed:
            try:
                texts = sliced(self.indices, old, {})
            except SeveralAxes as failure:
                return self._viewed(old, updated_node, failure)
            except NotSlices as failure:
                self.sheet.leave(old, f"this index is not a slice: {failure}", _INDEXING)
                return updated_node
            self.sheet.done[INDICES] += 1
        elif not blocks:
            return self._column(old, updated_node)
        return self.blocks.indexed(old, updated_node.value, texts)

    def _viewed(
        self, old: cst.Subscript, new: cst.Subscript, failure: NotSlices
    ) -> cst.BaseExpression:
        """Rewrite `t[i_p, n * i + j]` to a view with a dimension for each axis."""
        try:
            text = self._view(old)
        except NotSlices:
            self.sheet.leave(old, f"this index is not a slice: {failure}", _INDEXING)
            return new
        if isinstance(next(self.sheet.parents(old)), cst.AssignTarget):
            text += "[...]"
        self.sheet.done[INDICES] += 1
        return cst.parse_expression(text)

    def _view(self, old: cst.Subscript) -> str:
        """Return a view for an index that slices cannot express. Raises `NotSlices`."""
        element, skip = self.blocks.element(old)
        try:
            return element + viewed(self.indices, old, skip) + self._axes_last(old)
        except NotSlices:
            if skip:
                raise
            return element + pattern(self.indices, old, {}, self._new_order(old))

    def _axes_last(self, old: cst.Subscript) -> str:
        """Return the permutation that moves the axes that the call reduces to the end."""
        argument, call, *_ = self.sheet.parents(old)
        if not isinstance(call, cst.Call):
            return ""
        axis = keyword(call, AXIS)
        if axis is None or argument is axis:
            return ""
        axes = whole_numbers(axis.value)
        rank = max(index.rank for item in old.slice if (index := self._index(item)) is not None)
        last = [*range(rank - len(axes), rank)]
        if not axes or axes == last or max(axes) >= rank or min(axes) < 0:
            return ""
        self._axes[id(call)] = last
        order = [*(n for n in range(rank) if n not in axes), *axes]
        return f".permute({tuple(order)})"

    def _new_order(self, old: cst.Subscript) -> list[int]:
        """Return that permutation as an order of a pattern's axes; [] if they stay."""
        text = self._axes_last(old).removeprefix(".permute")
        return list(ast.literal_eval(text)) if text else []

    def _index(self, element: cst.SubscriptElement) -> Index | None:
        inner = element.slice
        return self.indices.of(inner.value) if isinstance(inner, cst.Index) else None

    def _reduced(self, old: cst.Call, new: cst.Call) -> cst.Call:
        """Return a call that reduces axes that have been moved to the end."""
        last = self._axes.get(id(old))
        axis = keyword(new, AXIS)
        if last is None or axis is None:
            return new
        return with_value(new, axis, cst.parse_expression(str(last)))

    def _column(self, old: cst.Subscript, new: cst.Subscript) -> cst.Subscript:
        """Rewrite `nl.load(t[0:128, k])`, a tile of one column, with `k:k + 1`."""
        call = next((p for p in self.sheet.parents(old) if isinstance(p, cst.Call)), None)
        if call is None or not any(arg.value is old for arg in call.args):
            return new
        instructions = self.sheet.instructions(call)
        shapes = {t.shape for t in self.sheet.tensors(call)}
        first, *others = new.slice
        numbers = [element.slice for element in others if isinstance(element.slice, cst.Index)]
        is_column = bool(shapes) and all(shape[1:] == (1,) for shape in shapes)
        plain = isinstance(first.slice, cst.Slice) and len(numbers) == len(others) > 0
        sources = {i.operand("src") for i in instructions if "src" in i.row.operand_index}
        ranks = {len(view.tensor.shape) for view in sources if isinstance(view, View)}
        if not is_column or not plain or ranks != {len(new.slice)}:
            return new
        texts = [code(element.slice) for element in new.slice]
        texts[-1] = f"{texts[-1]}:{added(texts[-1], '1')}"
        self.sheet.done[INDICES] += 1
        return subscript(new.value, texts)

    def _is_grid(self, node: cst.Subscript) -> bool:
        function = node.value.func if isinstance(node.value, cst.Call) else node.value
        return self.sheet.name_of(function) in (ARANGE, MGRID)

    def _is_in_masked(self, node: cst.Subscript) -> bool:
        """Whether the enclosing call has a mask, and therefore rewrites this index itself."""
        argument, call, *_ = self.sheet.parents(node)
        is_argument = isinstance(argument, cst.Arg)
        return is_argument and isinstance(call, cst.Call) and mask_argument(call) is not None

    def leave_Assign(  # noqa: N802
        self, original_node: cst.Assign, updated_node: cst.Assign
    ) -> cst.Assign:
        """Reduce the target of `t[...] = function(…, mask=…)` to what the mask selects."""
        cutter = self.cutters.get(id(original_node.value))
        if cutter is None or len(original_node.targets) != 1:
            return updated_node
        old, new = original_node.targets[0].target, updated_node.targets[0]
        try:
            target = cutter.target(old, new.target)
        except NotSlices as failure:
            self.sheet.leave(old, f"the mask is not an extent: {failure}", _MASKING)
            return updated_node
        return updated_node.with_changes(targets=[new.with_changes(target=target)])

    def leave_AugAssign(  # noqa: N802
        self, original_node: cst.AugAssign, updated_node: cst.AugAssign
    ) -> cst.AugAssign:
        """Rewrite the target of `t[...] += function(…, mask=…)` likewise."""
        statements.leave_added(self.sheet, original_node)
        cutter = self.cutters.get(id(original_node.value))
        if cutter is None:
            return updated_node
        try:
            target = cutter.target(original_node.target, updated_node.target)
        except NotSlices as failure:
            self.sheet.leave(original_node, f"the mask is not an extent: {failure}", _MASKING)
            return updated_node
        return updated_node.with_changes(target=target)

    def leave_Attribute(  # noqa: N802
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """Rewrite numbers of element types, shapes of lists of tiles, and `nki.tensor`."""
        return calls.written(self.blocks, original_node) or updated_node

    # ---- calls -----------------------------------------------------------------------------

    def leave_Call(  # noqa: N802
        self, original_node: cst.Call, updated_node: cst.Call
    ) -> cst.BaseExpression:
        """Rewrite a call: its mask first, then its result."""
        old, new = original_node, calls.method(self.sheet, original_node, updated_node)
        if (number := calls.scalar(self.sheet, old)) is not None:
            return number
        new = calls.copied(self.sheet, old, calls.unmasked(self.sheet, old, new))
        if self.sheet.name_of(old.func) in MAKERS:
            return self._tensor(old, new)
        if (address := blocks.address_of(self.sheet, old, new)) is not None:
            self.sheet.done[ADDRESSES] += 1
            return address
        try:
            new = self._cut(old, new)
        except NotSlices as failure:
            if not self.stairs.is_one(old):
                self.sheet.leave(old, f"the mask is not an extent: {failure}", _MASKING)
            return new
        new = calls.as_bits(self.sheet, old, self._reduced(old, new))
        row = calls.instruction(self.sheet, old)
        if row is not None:
            instructions = self.sheet.instructions(old)
            try:
                new = rewritten_patterns(self.indices, row, old, new, instructions)
                new = self.wider.repeated(row, old, new)
            except NotSlices as failure:
                self.sheet.leave(old, f"no pattern expresses this: {failure}", _PATTERNS)
                return new
        return self._with_output(old, new, row)

    def _cut(self, old: cst.Call, new: cst.Call) -> cst.Call:
        """Reduce the operands of a masked call to what its mask selects. Raises `NotSlices`."""
        mask = mask_argument(old)
        if mask is None or not calls.is_nki(self.sheet, old):
            return new
        bounds, instructions = mask_of(self.indices, mask), self.sheet.instructions(old)
        cutter = Cutter(
            self.indices, self.blocks, self.shapes, bounds, instructions, self._new_order
        )
        new = cutter.call(old, new)
        self.sheet.done[MASKS] += 1
        self.cutters[id(old)] = cutter
        return new

    def _with_output(self, old: cst.Call, new: cst.Call, row: Row | None) -> cst.BaseExpression:
        """Give a call that returns a tile the tile that it writes."""
        cutter = self.cutters.get(id(old))
        is_load = self.sheet.name_of(old.func) == LOAD
        if is_load and (cutter is not None or self._writes_target(old)):
            return self._with_result(old, new, None, cutter) or new
        if row is not None and _returns(row, old):
            return self._with_result(old, new, row, cutter) or new
        if (combined := calls.combined(self.sheet, old, new)) is not new:
            return combined
        if (
            cutter is None
            and (product := added_product(self.sheet, self.pending, old, new)) is not new
        ):
            return product
        new = shared_outputs(self.sheet, old, new) or new
        return statements.typed(self.sheet, old, self.wider.written(old, new))

    def leave_BinaryOperation(  # noqa: N802
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        """Rewrite `x * y` of tiles."""
        return statements.operator(self.sheet, original_node, updated_node)

    def _tensor(self, old: cst.Call, new: cst.Call) -> cst.BaseExpression:
        """Rewrite `nl.ndarray(shape, …)`: blocks, addresses, initial values."""
        new = unmarked(self.sheet, old, new)
        new = calls.unfilled(self.sheet, old, new)
        new = shared_outputs(self.sheet, old, new) or new
        try:
            tensor = self.blocks.made(old, new)
            if tensor is not new:
                self.sheet.done[BLOCKS] += 1
                return tensor
            tensor = blocks.plain(self.sheet, old, new)
        except NotSlices as failure:
            self.sheet.leave(old, f"its address is unknown: {failure}", _PLACING)
            return new
        if tensor is not new:
            self.sheet.done[ADDRESSES] += 1
        return tensor

    def _writes_target(self, call: cst.Call) -> bool:
        """Whether the call is one instruction that writes what the statement assigns to."""
        rows = {instruction.row.name for instruction in self.sheet.instructions(call)}
        return len(rows) == 1 and not self.sheet.tensors(call)

    def _with_result(
        self, old: cst.Call, new: cst.Call, row: Row | None, cutter: Cutter | None
    ) -> cst.Name | None:
        """Register the result of a call, for the enclosing statement to write."""
        target = self.blocks.target(old)
        lookup = Lookup(
            self.blocks.is_tensor, partial(sizes, self.indices), self.blocks.tile, target
        )
        try:
            result = result_of(self.sheet, old, row)
            selected = cutter.part(frozenset(t.shape for t in result.tensors)) if cutter else ""
            shape = stated_shape(row, old) if row is not None else ""
            shape = counts(self.indices, old.args[0].value) if row is None and old.args else shape
            maker = allocation(self.sheet, result, old, lookup, shape) if result.is_new else ""
        except (NoResult, NotSlices) as failure:
            declared = self._declared(old, new, row, cutter, lookup)
            if declared is None:
                self._leave_result(old, failure)
                return None
            (result, maker), selected = declared, ""
        if row is None:
            new = new.with_changes(func=self.sheet.of_module(result.row.module, result.row.name))
        args = [arg for arg in new.args if keyword_of(arg) != "dtype"]
        new = with_args(new, args) if len(args) < len(new.args) else new
        return self.pending.add(Pending(old, new, result._replace(part=selected), maker))

    def _declared(
        self, old: cst.Call, new: cst.Call, row: Row | None, cutter: Cutter | None, lookup: Lookup
    ) -> tuple[Result, str] | None:
        """Return the result of a call that was not evaluated, and how its tile is made."""
        if row is None or (cutter is not None and cutter.limits):
            return None
        declared = declared_result(self.sheet, self.indices, old, row)
        if declared is not None:
            return declared, ""
        return unreached_result(self.sheet, self.indices, lookup, old, new, row)

    def _leave_result(self, old: cst.Call, failure: Exception) -> None:
        """Report an unknown result; once for a function that was not evaluated at all."""
        scope = scope_of(self.sheet, old)
        if scope is None or self._is_evaluated(scope):
            self.sheet.leave(old, f"the result of this is unknown: {failure}", _RETURNING)
        elif id(scope) not in self.skipped:
            self.skipped[id(scope)] = self.sheet.span(scope)
            text = f"`{scope.name.value}` was not evaluated, and its instructions return tiles"
            help = "give the types of its arguments: --arg, or -k"
            unused = is_never_called(self.sheet, scope)
            help = "nothing calls it: remove it" if unused else help
            self.sheet.leave(scope.name, text, help, sure=not unused)

    def _is_evaluated(self, scope: cst.FunctionDef) -> bool:
        first, last = self.sheet.span(scope)[1], self.sheet.span(scope)[3]
        return any(first <= at[0] <= last for at in self.sheet.facts.instructions)

    # ---- statements ------------------------------------------------------------------------

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:  # noqa: N802
        """Set the axes that become loops, which applies to all of the statement."""
        self.indices.loops = loops_of(self.sheet, self.indices, node)

    def leave_SimpleStatementLine(  # noqa: N802
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        """Put instructions on lines of their own, before the use of their results."""
        loops, self.indices.loops = self.indices.loops, {}
        if loops:
            return under(self.sheet, loops, updated_node)
        if len(updated_node.body) != 1:
            return updated_node
        statement = original_node.body[0]
        destination = self.blocks.places.get(id(original_node))
        if destination is not None:
            self.moved.setdefault(id(destination), []).append(updated_node)
            return cst.RemoveFromParent()
        if isinstance(statement, cst.Assign) and blocks.is_alias(self.sheet, statement):
            return cst.RemoveFromParent()
        if (folded := self.folds.written(original_node, updated_node)) is not None:
            self.sheet.done[FOLDS] += 1
            return folded
        if (returned := stored(self.sheet, self.pending, statement, updated_node)) is not None:
            return returned
        updated_node = moved(self.sheet, statement, updated_node) or updated_node
        if (in_two := self.stairs.written(original_node, updated_node)) is not None:
            return in_two
        condition = self._condition(statement)
        if condition is None:
            text = "parts of this statement have masks that differ from that of the whole"
            self.sheet.leave(statement, text, "write each call in a statement of its own")
            return original_node
        condition = condition or self.hidden.condition(statement)
        self.hidden.note(statement, condition)
        return Hoisting(self.sheet, self.pending).hoisted(updated_node, condition)

    def _condition(self, statement: cst.BaseSmallStatement) -> str | None:
        """Return the condition under which a statement runs; None if its parts have several."""
        cutters = [(c, self.cutters[id(c)]) for c in walk(statement) if id(c) in self.cutters]
        conditions = {cutter.condition for _, cutter in cutters} - {""}
        if not conditions:
            return ""
        cutter_of_value = self.cutters.get(id(getattr(statement, "value", None)))
        if len(conditions) > 1 or cutter_of_value is None or not cutter_of_value.condition:
            return None
        return cutter_of_value.condition

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:  # noqa: N802
        """Rewrite a loop whose body was traced once: returns move after it, numbers are
        restored.
        """
        if not is_traced(self.sheet, original_node):
            return updated_node
        loop, last = without_return(self.sheet, original_node, updated_node)
        statements = self.carried.written(original_node, loop)
        return statements if last is None else cst.FlattenSentinel([*statements, last])

    def leave_IndentedBlock(  # noqa: N802
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        """Merge neighbouring statements under the same condition."""
        return updated_node.with_changes(body=joined(updated_node.body))


def _returns(row: Row, call: cst.Call) -> bool:
    """Whether the instruction writes a dst that the call does not pass."""
    return row.parameters[0] == "dst" and keyword(call, "dst") is None
