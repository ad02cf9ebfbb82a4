"""Traverse a source of Beta 1 once, and write its replacement for later versions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

import libcst as cst

from nkic.base.source import Span
from nkic.machine.operands import Row
from nkic.machine.targets import Buffer
from nkic.migrate.beta1 import blocks, calls, statements
from nkic.migrate.beta1.blocks import BLOCKS, MAKERS, Blocks, unmarked
from nkic.migrate.beta1.calls import FOLDS, MASKS, is_never_called
from nkic.migrate.beta1.indices import ARANGE, MGRID, Indices, code, index_values, number
from nkic.migrate.beta1.masks import Cutter, Stairs, mask_of, repeated, widened
from nkic.migrate.beta1.results import (
    Hoisting,
    NoResult,
    Pending,
    PendingCalls,
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
    sliced,
    subscript,
    viewed,
)
from nkic.migrate.beta1.statements import (
    Hidden,
    added_product,
    folded,
    is_evaluated,
    is_traced,
    loops_of,
    moved,
    restored,
    stored,
    under,
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
from nkic.migrate.facts import dst_of
from nkic.migrate.sheet import Sheet, only_target, scope_of, walk
from nkic.program.program import View

INDICES, ADDRESSES = "an index expression", "an allocator"
_INDEXING = "slice the tensor, or use t.ap(pattern)"
_MASKING = "slice to the valid part, `t[0:min(128, rows - start)]`"
_PATTERNS = "write the pattern, [[step, count], …]"
_PLACING = "pass address=(partition, byte)"
_RETURNING = "make dst with nl.ndarray, and pass it"
LOAD, AXIS = "nki.language.load", "axis"


class Writer(cst.CSTTransformer):
    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self.sheet = sheet
        self.indices = Indices(sheet)
        self.blocks = Blocks(self.indices)
        self.pending = PendingCalls()
        self.hidden = Hidden(self.blocks)
        self.stairs = Stairs(self.blocks)
        self._axes: dict[int, list[int]] = {}  # of calls whose axes were moved to the end
        self.cutters: dict[int, Cutter] = {}  # of masked calls, by the original call
        self.skipped: dict[int, Span] = {}  # functions that were not evaluated
        self.moved: dict[int, list[cst.BaseStatement]] = {}  # by the statement after them

        self._rules: dict[type[cst.CSTNode], Callable[[Any, Any], Any]] = {
            cst.Subscript: self._subscript,
            cst.Assign: self._assign,
            cst.AugAssign: self._aug_assign,
            cst.Attribute: lambda old, new: calls.written(self.blocks, old) or new,
            cst.Call: self._call,
            cst.BinaryOperation: partial(statements.operator, sheet),
            cst.SimpleStatementLine: self._line,
            cst.For: self._for,
            # Neighbouring statements under the same condition are merged.
            cst.IndentedBlock: lambda old, new: new.with_changes(body=joined(new.body)),
        }

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Set the axes that become loops, which applies to all of a statement."""
        if isinstance(node, cst.SimpleStatementLine):
            self.indices.loops = loops_of(self.sheet, self.indices, node)
        return True

    def on_leave(self, old: Any, new: Any) -> Any:
        """Return the node that replaces an old one, after the tiles that are now made before it."""
        rule = self._rules.get(type(old))
        node = rule(old, new) if rule is not None else new
        before = self.moved.get(id(old))
        if not before:
            return node
        nodes = node if isinstance(node, cst.FlattenSentinel) else [node]
        replacements = [each for each in nodes if isinstance(each, cst.CSTNode)]
        return cst.FlattenSentinel([*before, *replacements])

    # ---- indices ----------------------------------------------------------------------

    def _subscript(self, old: cst.Subscript, new: cst.Subscript) -> cst.BaseExpression:
        """Rewrite `t[i_p, i_f]`."""
        if self._is_grid(old) or self._is_in_masked(old):
            return new
        blocks, indexed = self.blocks.count(old), is_indexed(self.indices, old)
        texts = [code(element.slice) for element in new.slice]
        if indexed:
            try:
                texts = sliced(self.indices, old, {})
            except SeveralAxes as failure:
                return self._viewed(old, new, failure)
            except NotSlices as failure:
                self.sheet.leave(old, f"this index is not a slice: {failure}", _INDEXING)
                return new
            self.sheet.done[INDICES] += 1
        elif not blocks:
            return self._column(old, new)
        return self.blocks.indexed(old, new.value, texts)

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
        values = map(self.indices.of, index_values(old))
        rank = max(index.ndim for index in values if index is not None)
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

    def _reduced(self, old: cst.Call, new: cst.Call) -> cst.Call:
        last = self._axes.get(id(old))
        axis = keyword(new, AXIS)
        if last is None or axis is None:
            return new
        return with_value(new, axis, cst.parse_expression(str(last)))

    def _column(self, old: cst.Subscript, new: cst.Subscript) -> cst.Subscript:
        """Rewrite `nl.load(t[0:128, k])`, a tile of one column, with `k:k + 1`."""
        call = self.sheet.around(old, cst.Call)
        if call is None or not any(arg.value is old for arg in call.args):
            return new
        shapes = {t.shape for t in self.sheet.tensors(call)}
        first, *others = (element.slice for element in new.slice)
        is_column = bool(shapes) and all(shape[1:] == (1,) for shape in shapes)
        plain = others and isinstance(first, cst.Slice)
        plain = plain and all(isinstance(part, cst.Index) for part in others)
        instructions = self.sheet.instructions(call)
        sources = {i.operand("src") for i in instructions if "src" in i.row.operand_index}
        ranks = {len(view.tensor.shape) for view in sources if isinstance(view, View)}
        if not is_column or not plain or ranks != {len(new.slice)}:
            return new
        texts = [code(element.slice) for element in new.slice]
        texts[-1] = f"{texts[-1]}:{number(texts[-1]) + 1}"
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

    def _assign(self, old: cst.Assign, new: cst.Assign) -> cst.Assign:
        """Reduce the target of `t[...] = function(…, mask=…)` to what the mask selects."""
        target = self._cut_target(old, new)
        if target is None:
            return new
        return new.with_changes(targets=[new.targets[0].with_changes(target=target)])

    def _aug_assign(self, old: cst.AugAssign, new: cst.AugAssign) -> cst.AugAssign:
        """Rewrite the target of `t[...] += function(…, mask=…)` likewise."""
        statements.leave_added(self.sheet, old)
        target = self._cut_target(old, new)
        added = [dst_of(instruction) for instruction in self.sheet.instructions(old)]
        in_psum = any(dst is not None and dst.tensor.buffer is Buffer.PSUM for dst in added)
        if isinstance(old.target, cst.Name) and in_psum and self.pending.get(new.value) is None:
            # Since then, `t += x` names the sum t, in SBUF, where no later matmul can add to it.
            target = self.sheet.parsed("{}[...]", new.target)
        return new if target is None else new.with_changes(target=target)

    def _cut_target(self, old: cst.Assign | cst.AugAssign, new: cst.CSTNode) -> Any:
        cutter, was, now = self.cutters.get(id(old.value)), only_target(old), only_target(new)
        if cutter is None or was is None or now is None:
            return None
        try:
            return cutter.target(was, now)
        except NotSlices as failure:
            place = was if isinstance(old, cst.Assign) else old
            self.sheet.leave(place, f"the mask is not an extent: {failure}", _MASKING)
            return None

    # ---- calls -----------------------------------------------------------------------------

    def _call(self, old: cst.Call, new: cst.Call) -> cst.BaseExpression:
        new = calls.method(self.sheet, old, new)
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
                new = calls.rewritten(self.indices, row, old, new, instructions)
                new = repeated(self.blocks, row, old, new)
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
        cutter = Cutter(self.blocks, bounds, instructions, self._new_order)
        new = cutter.call(old, new)
        self.sheet.done[MASKS] += 1
        self.cutters[id(old)] = cutter
        return new

    def _with_output(self, old: cst.Call, new: cst.Call, row: Row | None) -> cst.BaseExpression:
        """Give a call that returns a tile the tile that it writes."""
        cutter = self.cutters.get(id(old))
        if self.sheet.name_of(old.func) == LOAD:
            rows = {instruction.row.name for instruction in self.sheet.instructions(old)}
            writes_target = len(rows) == 1 and not self.sheet.tensors(old)
            if cutter is not None or writes_target:
                return self._with_result(old, new, None, cutter) or new
        if row is not None and row.parameters[0] == "dst" and keyword(old, "dst") is None:
            return self._with_result(old, new, row, cutter) or new
        if (combined := calls.combined(self.sheet, old, new)) is not new:
            return combined
        product = added_product(self.sheet, self.pending, old, new) if cutter is None else new
        if product is not new:
            return product
        new = shared_outputs(self.sheet, old, new) or new
        return statements.typed(self.sheet, old, widened(self.blocks, old, new))

    def _tensor(self, old: cst.Call, new: cst.Call) -> cst.BaseExpression:
        new = calls.unfilled(self.sheet, old, unmarked(self.sheet, old, new))
        new = shared_outputs(self.sheet, old, new) or new
        try:
            tensor = self.blocks.made(old, new)
            is_made = tensor is not new
            tensor = tensor if is_made else blocks.of_block(self.sheet, old, new)
        except NotSlices as failure:
            self.sheet.leave(old, f"its address is unknown: {failure}", _PLACING)
            return new
        if tensor is not new:
            self.sheet.done[BLOCKS if is_made else ADDRESSES] += 1
        return tensor

    def _with_result(
        self, old: cst.Call, new: cst.Call, row: Row | None, cutter: Cutter | None
    ) -> cst.Name | None:
        """Register the result of a call, for the enclosing statement to write."""
        try:
            result = result_of(self.sheet, old, row)
            selected = cutter.part(frozenset(t.shape for t in result.tensors)) if cutter else ""
            shape = calls.stated_shape(row, old) if row is not None else ""
            shape = counts(self.indices, old.args[0].value) if row is None and old.args else shape
            maker = allocation(self.blocks, result, old, shape) if result.is_new else ""
        except (NoResult, NotSlices) as failure:
            declared = None
            if row is not None and (cutter is None or not cutter.limits):
                own = calls.declared_result(self.sheet, self.indices, old, row)
                declared = (own, "") if own else calls.unreached_result(self.blocks, old, new, row)
            if declared is None:
                self._leave_result(old, failure)
                return None
            (result, maker), selected = declared, ""
        if row is None:
            new = new.with_changes(func=self.sheet.of_module(result.row.module, result.row.name))
        args = [arg for arg in new.args if keyword_of(arg) != "dtype"]
        new = with_args(new, args) if len(args) < len(new.args) else new
        return self.pending.add(Pending(old, new, result._replace(part=selected), maker))

    def _leave_result(self, old: cst.Call, failure: Exception) -> None:
        """Report an unknown result; once for a function that was not evaluated at all."""
        scope = scope_of(self.sheet, old)
        if scope is None or is_evaluated(self.sheet, scope):
            self.sheet.leave(old, f"the result of this is unknown: {failure}", _RETURNING)
        elif id(scope) not in self.skipped:
            self.skipped[id(scope)] = self.sheet.span(scope)
            text = f"`{scope.name.value}` was not evaluated, and its instructions return tiles"
            help = "give the types of its arguments: --arg, or -k"
            unused = is_never_called(self.sheet, scope)
            help = "nothing calls it: remove it" if unused else help
            self.sheet.leave(scope.name, text, help, sure=not unused)

    # ---- statements ------------------------------------------------------------------------

    def _line(self, old: cst.SimpleStatementLine, new: cst.SimpleStatementLine) -> Any:
        """Put instructions on lines of their own, before the use of their results."""
        loops, self.indices.loops = self.indices.loops, {}
        if loops:
            return under(self.sheet, loops, new)
        if len(new.body) != 1:
            return new
        statement = old.body[0]
        destination = self.blocks.places.get(id(old))
        if destination is not None:
            self.moved.setdefault(id(destination), []).append(new)
            return cst.RemoveFromParent()
        if isinstance(statement, cst.Assign) and blocks.is_alias(self.sheet, statement):
            return cst.RemoveFromParent()
        if (fold := folded(self.sheet, old, new)) is not None:
            self.sheet.done[FOLDS] += 1
            return fold
        if (returned := stored(self.sheet, self.pending, statement, new)) is not None:
            return returned
        new = moved(self.sheet, statement, new) or new
        if (in_two := self.stairs.written(old, new)) is not None:
            return in_two
        condition = self._condition(statement)
        if condition is None:
            text = "parts of this statement have masks that differ from that of the whole"
            self.sheet.leave(statement, text, "write each call in a statement of its own")
            return old
        condition = condition or self.hidden.condition(statement)
        self.hidden.note(statement, condition)
        return Hoisting(self.sheet, self.pending).hoisted(new, condition)

    def _condition(self, statement: cst.BaseSmallStatement) -> str | None:
        conditions = {
            self.cutters[id(c)].condition for c in walk(statement) if id(c) in self.cutters
        }
        if not conditions - {""}:
            return ""
        whole = self.cutters.get(id(getattr(statement, "value", None)))
        is_one = len(conditions - {""}) == 1 and whole is not None and whole.condition
        return is_one or None

    def _for(self, old: cst.For, new: cst.For) -> Any:
        """Rewrite a loop traced once: returns move after it, numbers are restored."""
        if not is_traced(self.sheet, old):
            return new
        loop, last = without_return(self.sheet, old, new)
        statements = restored(self.indices, old, loop)
        return statements if last is None else cst.FlattenSentinel([*statements, last])
