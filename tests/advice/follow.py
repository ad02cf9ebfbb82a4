"""Follow the advice of a diagnostic, as a reader would: change the kernel's text or its options.

`follow` returns what the advice makes of a case, or None if only a person can follow it. Each rule
is a pattern of help texts and a function that edits the text at the place of the diagnostic.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from nkic.base.diagnostics import Diagnostic, Fix
from nkic.base.source import Span
from nkic.machine.instructions import ROWS


@dataclass(frozen=True)
class Source:
    """The text of a kernel file, and the options that it is compiled with."""

    text: str
    options: Mapping[str, str] = field(default_factory=dict)

    def with_option(self, name: str, value: str) -> Source:
        return replace(self, options={**self.options, name: value})

    def at(self, line: int, column: int) -> int:
        """Return the offset of a line and a column, both counted from 1."""
        lines = self.text.splitlines(keepends=True)
        return sum(map(len, lines[: line - 1])) + column - 1

    def of(self, span: Span) -> str:
        start, end = self.bounds(span)
        return self.text[start:end]

    def bounds(self, span: Span) -> tuple[int, int]:
        return self.at(span.line, span.column), self.at(span.end_line, span.end_column)

    def put(self, bounds: tuple[int, int], text: str) -> Source:
        return replace(self, text=self.text[: bounds[0]] + text + self.text[bounds[1] :])

    def node_bounds(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        first = self.at(node.lineno, node.col_offset + 1)
        return first, self.at(node.end_lineno or 0, (node.end_col_offset or 0) + 1)

    def shown(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        start, end = self.node_bounds(node)
        return self.text[start:end]


class Place:
    """The place of a diagnostic in the source: its call, argument and statement."""

    def __init__(self, source: Source, diagnostic: Diagnostic) -> None:
        assert diagnostic.primary is not None
        self.source, self.diagnostic = source, diagnostic
        self.span = diagnostic.primary.span
        self.bounds = source.bounds(self.span)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source.text)

    def around(self, kind: type[ast.AST]) -> Iterator[ast.AST]:
        """Yield the nodes of a kind around the place, innermost first."""
        found = [
            (end - start, node)
            for node in ast.walk(self.tree)
            if isinstance(node, kind) and isinstance(node, ast.expr | ast.stmt | ast.keyword)
            for start, end in [self.source.node_bounds(node)]
            if start <= self.bounds[0] and self.bounds[1] <= end
        ]
        yield from (node for _, node in sorted(found, key=lambda pair: pair[0]))

    def call(self) -> ast.Call | None:
        """Return the innermost call around the place."""
        return next((n for n in self.around(ast.Call) if isinstance(n, ast.Call)), None)

    def statement(self) -> ast.stmt:
        return next(n for n in self.around(ast.stmt) if isinstance(n, ast.stmt))

    def keyword(self, name: str = "") -> ast.keyword | None:
        """Return the keyword argument of the call with this name, or the one at the place."""
        if name:
            call = self.call()
            return next((k for k in call.keywords if k.arg == name), None) if call else None
        return next((n for n in self.around(ast.keyword) if isinstance(n, ast.keyword)), None)

    def value(self) -> tuple[int, int]:
        """Return the bounds of the argument at the place, without its name."""
        keyword = self.keyword()
        return self.source.node_bounds(keyword.value) if keyword else self.bounds

    def replaced(self, text: str) -> Source:
        """Replace the argument, or the expression, at the place."""
        return self.source.put(self.value(), text)

    def without(self, keyword: ast.keyword) -> Source:
        """Remove a keyword argument and the comma before it, or after it."""
        start, end = self.source.node_bounds(keyword)
        before = self.source.text[:start].rstrip()
        if before.endswith(","):
            return self.source.put((len(before) - 1, end), "")
        after = re.match(r"\s*,\s*", self.source.text[end:])
        return self.source.put((start, end + (after.end() if after else 0)), "")

    def given(self, argument: str) -> Source | None:
        """Add `name=value` to the call, in place of the argument of that name."""
        name, _, value = argument.partition("=")
        call, keyword = self.call(), self.keyword(name)
        if call is None:
            return None
        if keyword is not None:
            return self.source.put(self.source.node_bounds(keyword.value), value)
        end = self.source.node_bounds(call)[1] - 1
        return self.source.put((end, end), f", {argument}")

    def before(self, *lines: str) -> Source:
        start, _ = self.source.node_bounds(self.statement())
        indent = " " * self.statement().col_offset
        return self.source.put((start, start), "".join(f"{line}\n{indent}" for line in lines))

    def spelt(self, code: str) -> str:
        """Return code of the advice with the kernel's own parts of tensors for `name[…]`."""
        call = self.call()
        values = [*call.args, *(k.value for k in call.keywords)] if call else []
        for text in map(self.source.shown, values):
            code = code.replace(f"{text.partition('[')[0]}[…]", text)
        return code

    def gone(self) -> Source:
        """Replace the statement by `pass`."""
        return self.source.put(self.source.node_bounds(self.statement()), "pass")

    def after(self, line: str) -> Source:
        _, end = self.source.node_bounds(self.statement())
        return self.source.put((end, end), f"\n{' ' * self.statement().col_offset}{line}")

    def operand(self, name: str) -> ast.expr | None:
        """Return the argument of the call for a parameter of its instruction."""
        call, keyword = self.call(), self.keyword(name)
        if keyword is not None or call is None:
            return keyword.value if keyword else None
        row = ROWS.get(ast.unparse(call.func).rpartition(".")[2])
        parameters = row.parameters if row else ()
        position = parameters.index(name) if name in parameters else len(call.args)
        return call.args[position] if position < len(call.args) else None

    def declaration(self, operand: str) -> ast.Call | None:
        """Return the call of nl.ndarray that makes the tile passed as `operand`."""
        value = self.operand(operand)
        value = value.value if isinstance(value, ast.Subscript) else value
        name = value.id if isinstance(value, ast.Name) else ""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                target = node.targets[0]
                if isinstance(target, ast.Name) and target.id == name:
                    return node.value if "ndarray" in ast.unparse(node.value.func) else None
        return None


Follow = Callable[[Place, re.Match[str]], Source | None]
RULES: list[tuple[str, Follow]] = []


def rule(pattern: str) -> Callable[[Follow], Follow]:
    def add(function: Follow) -> Follow:
        RULES.append((pattern, function))
        return function

    return add


def follow(source: Source, diagnostic: Diagnostic) -> Source | None:
    """Return the source after the first rule that applies, or None."""
    for fix in diagnostic.fixes:
        return fixed(source, fix)
    if diagnostic.primary is None or not diagnostic.help:
        return None
    place = Place(source, diagnostic)
    for pattern, function in RULES:
        found = re.search(pattern, diagnostic.help)
        try:
            changed = function(place, found) if found else None
        except SyntaxError:  # the example itself, whose error is about syntax
            return None
        if changed is not None and changed != source:
            return changed
    return None


def fixed(source: Source, fix: Fix) -> Source:
    return source.put(source.bounds(fix.span), fix.replacement)


# ---- rules: the most special first ---------------------------------------------------------------


@rule(
    r"repeat it in all .* make `(\w+)` a tile of shape (\(.*?\)), and write (nisa\.dma_copy\(.*\))$"
)
def _row(place: Place, found: re.Match[str]) -> Source | None:
    name, shape, copy = found.groups()
    text = re.sub(rf"(?m)^(\s*)nisa\.dma_copy\(dst={name}, .*$", rf"\1{copy}", place.source.text)
    text = re.sub(rf"\b{name} = nl\.ndarray\(\([^)]*\)", f"{name} = nl.ndarray({shape}", text)
    return replace(place.source, text=text)


@rule(
    r"^for a number per element, leave out `(\w+)`, and before the call write "
    r"(\w+ = nl\..*?sbuf\)); (nisa\..*?\)), and pass (data=\w+)(;|$)"
)
def _bias(place: Place, found: re.Match[str]) -> Source | None:
    keyword = place.keyword(found[1])
    if keyword is None:
        return None
    changed = _again(place.without(keyword), place).given(found[4])
    lines = found[2], place.spelt(found[3])
    return None if changed is None else _again(changed, place).before(*lines)


@rule(r"^for a number per element, write (nisa\..*?\))(;|$)")
def _per_element(place: Place, found: re.Match[str]) -> Source | None:
    return place.source.put(place.source.node_bounds(place.statement()), place.spelt(found[1]))


@rule(r"^load it first: (tile = .*?\)); (nisa\..*\))$")
def _load(place: Place, found: re.Match[str]) -> Source | None:
    return _again(place.replaced("tile"), place).before(found[1], place.spelt(found[2]))


@rule(r"^to repeat it .* write src=(.*)$")
def _repeat(place: Place, found: re.Match[str]) -> Source | None:
    return place.replaced(found[1])


@rule(r"^a row is repeated with (\.reshape.*)$")
def _row_first(place: Place, found: re.Match[str]) -> Source | None:
    text = place.source.of(place.span)
    return place.source.put(place.bounds, text[: text.index(".broadcast")] + found[1])


@rule(r"^repeat it in all \d+ partitions: `(.*?)`$")
@rule(r"^repeat the column with `(.*?)`")
@rule(r"^use \d+ partitions of `\w+`: `(.*?)`$")
def _code_in_place(place: Place, found: re.Match[str]) -> Source | None:
    """Replace the argument that the code mentions."""
    name = re.match(r"(?:nl\.\w+\()?(\w+)", found[1])
    call = place.call()
    values = [*call.args, *(k.value for k in call.keywords)] if call else []
    for value in values:
        if name and place.source.shown(value) == name[1]:
            return place.source.put(place.source.node_bounds(value), found[1])
    return None


@rule(r"compile with `--(nki|target|lnc) ([\w.]+)`")
@rule(r"launch the kernel with `--(lnc) (\d)`")
def _option(place: Place, found: re.Match[str]) -> Source | None:
    return place.source.with_option(found[1], found[2])


@rule(r"^copy `(\w+)` into a float32 tile with `nisa.tensor_copy` first")
def _as_float32(place: Place, found: re.Match[str]) -> Source | None:
    return _copied(place, "nl.float32", "nisa.tensor_copy")


@rule(r"^copy (?:it|`\w+`) to SBUF with `?nisa.tensor_copy`? first")
def _to_sbuf(place: Place, found: re.Match[str]) -> Source | None:
    return _copied(place, "", "nisa.tensor_copy")


@rule(r"^copy `\w+` with `(nisa\.\w+)` first$")
def _elsewhere(place: Place, found: re.Match[str]) -> Source | None:
    return _copied(place, "", found[1])


def _copied(place: Place, dtype: str, copy: str) -> Source | None:
    start, end = place.value()
    value = place.source.text[start:end]
    if not re.fullmatch(r"[\w.\[\]:, ]+", value):
        return None
    made = f"copied = nl.ndarray({value}.shape, dtype={dtype or f'{value}.dtype'}, buffer=nl.sbuf)"
    changed = place.source.put((start, end), "copied")
    return _again(changed, place).before(made, f"{copy}(dst=copied, src={value})")


def _again(source: Source, place: Place) -> Place:
    line, column = place.statement().lineno, place.statement().col_offset + 1
    span = place.span._replace(line=line, column=column, end_line=line, end_column=column)
    primary = place.diagnostic.primary
    assert primary is not None
    return Place(source, replace(place.diagnostic, primary=replace(primary, span=span)))


@rule(r"^make `(\w+)` (?:a tile of|an) (nl\.\w+)(?: tile)?(?:,|$)")
@rule(r"^make `(\w+)` a tile of (nl\.\w+), ")
@rule(r"allocate `(\w+)` as (\w+)")
def _dtype(place: Place, found: re.Match[str]) -> Source | None:
    made, dtype = place.declaration(found[1]), found[2]
    dtype = dtype if dtype.startswith("nl.") else f"nl.{dtype}"
    if made is None:
        return None
    keyword = next((k for k in made.keywords if k.arg == "dtype"), None)
    value = keyword.value if keyword else made.args[1]
    return place.source.put(place.source.node_bounds(value), dtype)


@rule(r"^make `(\w+)` a tile of shape \[(\d+, \d+)\]")
def _shape(place: Place, found: re.Match[str]) -> Source | None:
    made = place.declaration(found[1])
    bounds = place.source.node_bounds(made.args[0]) if made else None
    return place.source.put(bounds, f"({found[2]})") if bounds else None


@rule(r"^reinterpret (`.*`) with `(\.view\(.*?\))`$")
def _view(place: Place, found: re.Match[str]) -> Source | None:
    source = place.source
    for name in re.findall(r"`(\w+)`", found[1]):
        keyword = _again(source, place).keyword(name)
        if keyword is None:
            return None
        end = source.node_bounds(keyword.value)[1]
        source = source.put((end, end), found[2])
    return source


@rule(r"write `min\((\d+), (\d+)\)`")
def _bounded(place: Place, found: re.Match[str]) -> Source | None:
    text = place.source.of(place.span)
    changed = re.sub(rf"\b{found[1]}\b", f"min({found[1]}, {found[2]})", text)
    return place.source.put(place.bounds, changed) if changed != text else None


@rule(r"^use (-?[\d.e+-]+)(?:,|$)")
@rule(r"^use a (?:number|constant) from -?[\d.]+ to (\d+)")
@rule(r"^shift by 0 to (\d+)")
@rule(r"^pass the fraction .* such as ([\d.]+)")
def _number(place: Place, found: re.Match[str]) -> Source | None:
    return place.replaced(found[1])


@rule(r"^write ((?:nl|nisa)\.\w+(?:\.\w+)?)(?:,|$)")
@rule(r"^use (nl\.\w+)$")
@rule(r"its operator is (nl\.\w+)$")
def _name(place: Place, found: re.Match[str]) -> Source | None:
    return place.replaced(found[1])


@rule(r"^write (\d+), or use `//`")
def _whole(place: Place, found: re.Match[str]) -> Source | None:
    text = place.source.of(place.span)
    return place.source.put(place.bounds, text.replace(f"{found[1]}.0", found[1], 1))


@rule(r"^use `//` for whole numbers")
def _floor(place: Place, found: re.Match[str]) -> Source | None:
    text = place.source.of(place.span)
    changed = re.sub(r"(?<!/)/(?!/)", "//", text)
    changed = changed if changed != text else re.sub(r"\b(\d+)\.0\b", r"\1", text)
    return place.source.put(place.bounds, changed) if changed != text else None


@rule(r"^write `(\w+)`, which is the same")
@rule(r"^write (\w+)[:,] (?:it is|which is)")
def _other_name(place: Place, found: re.Match[str]) -> Source | None:
    text = place.source.of(place.span)
    changed = found[1] if found[1] == "range" else re.sub(r"\w+$", found[1], text)
    return place.source.put(place.bounds, changed)


@rule(r"leave (?:out )?`(\w+)=?`(?: out)?")
def _left_out(place: Place, found: re.Match[str]) -> Source | None:
    keyword = place.keyword(found[1])
    return place.without(keyword) if keyword else None


@rule(r"^(?:leave it out|remove it\b(?! from))")
@rule(r"^(?:make dst with that dtype, and remove the parameter)")
@rule(r"^the result has the (?:dtype|shape) of dst")
def _removed(place: Place, found: re.Match[str]) -> Source | None:
    keyword = place.keyword()
    return place.without(keyword) if keyword else None


@rule(r"^write (\w+)=$")
def _renamed(place: Place, found: re.Match[str]) -> Source | None:
    keyword = place.keyword()
    if keyword is None or keyword.arg is None:
        return None
    start, _ = place.source.node_bounds(keyword)
    return place.source.put((start, start + len(keyword.arg)), found[1])


@rule(r"^pass `(\w+=[\w.]+)`, or")
@rule(r"^pass (accumulate=\w+) ")
def _passed(place: Place, found: re.Match[str]) -> Source | None:
    return place.given(found[1])


@rule(r"^write (src=nisa\.register_alloc)\(value\)")
def _in_register(place: Place, found: re.Match[str]) -> Source | None:
    keyword = place.keyword()
    if keyword is None:
        return None
    value = place.source.shown(keyword.value)
    return place.source.put(place.source.node_bounds(keyword), f"{found[1]}({value})")


@rule(r"^skip the instruction if there is nothing to do")
@rule(r"^remove the declaration$")
def _skipped(place: Place, found: re.Match[str]) -> Source | None:
    return place.gone()


@rule(r"^remove it from the return statement")
@rule(r"or remove it from the return statement")
def _not_returned(place: Place, found: re.Match[str]) -> Source | None:
    statement = place.statement()
    if not isinstance(statement, ast.Return) or not isinstance(statement.value, ast.Tuple):
        return None
    kept = [
        place.source.shown(value)
        for value in statement.value.elts
        if place.source.node_bounds(value) != place.bounds
    ]
    ending = "," if len(kept) == 1 else ""
    bounds = place.source.node_bounds(statement)
    return place.source.put(bounds, f"return {', '.join(kept)}{ending}")


@rule(r"^put `(nisa\.core_barrier\(.*?\))` between them")
def _barrier(place: Place, found: re.Match[str]) -> Source | None:
    return place.before(found[1])


@rule(r"loop over nl\.(sequential_range|static_range)(?:,|$)")
def _range(place: Place, found: re.Match[str]) -> Source | None:
    for loop in place.around(ast.For):
        assert isinstance(loop, ast.For)
        called = place.source.shown(loop.iter)
        if "affine_range" in called or "sequential_range" in called:
            text = re.sub(r"\b\w+_range\b", found[1], called)
            return place.source.put(place.source.node_bounds(loop.iter), text)
    return None


@rule(r"^import `([\w.]+)`(?: instead)?$")
@rule(r"^import `([\w.]+)`, or")
def _import(place: Place, found: re.Match[str]) -> Source | None:
    text = place.source.of(place.span)
    changed = re.sub(r"(?<=import )[\w.]+|(?<=from )[\w.]+", found[1], text, count=1)
    return place.source.put(place.bounds, changed) if changed != text else None


@rule(r"^move `\w+` to byte ([\d,]+)")
@rule(r"^choose a start of at most ([\d,]+)")
def _address(place: Place, found: re.Match[str]) -> Source | None:
    keyword = place.keyword("address")
    if keyword is None or not isinstance(keyword.value, ast.Tuple):
        return None
    byte = keyword.value.elts[1]
    return place.source.put(place.source.node_bounds(byte), found[1].replace(",", ""))


@rule(r"^write `is not None`")
def _exists(place: Place, found: re.Match[str]) -> Source | None:
    return place.source.put(place.bounds, f"{place.source.of(place.span)} is not None")


@rule(r"^write `?(nl\.sum|nl\.max|nl\.min)\(t, (axis=\d)\)")
def _as_function(place: Place, found: re.Match[str]) -> Source | None:
    call = place.call()
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    owner = place.source.shown(call.func.value)
    return place.source.put(place.source.node_bounds(call), f"{found[1]}({owner}, {found[2]})")


@rule(r"^make `(\w+)` with buffer=(nl\.\w+)")
def _buffer(place: Place, found: re.Match[str]) -> Source | None:
    pattern = rf"(\b{found[1]} = nl\.ndarray\(.*buffer=)nl\.\w+"
    return replace(place.source, text=re.sub(pattern, rf"\g<1>{found[2]}", place.source.text))


@rule(r"^write to a tile in (\w+), then copy it to its destination with `(nisa\.\w+)`")
def _through(place: Place, found: re.Match[str]) -> Source | None:
    value = place.source.text[slice(*place.value())]
    made = f"made = nl.ndarray({value}.shape, dtype={value}.dtype, buffer=nl.{found[1]})"
    changed = _again(place.replaced("made"), place).after(f"{found[2]}(dst={value}, src=made)")
    return _again(changed, place).before(made)


@rule(r"^write nl\.multiply\(x, nl\.reciprocal\(y\)\)")
def _reciprocal(place: Place, found: re.Match[str]) -> Source | None:
    call = place.call()
    if call is None or len(call.args) < 2:
        return None
    x, y = map(place.source.shown, call.args[:2])
    bounds = place.source.node_bounds(call)
    return place.source.put(bounds, f"nl.multiply({x}, nl.reciprocal({y}))")


@rule(r"^choose element by element: `(nl\.where\(.*?)`")
def _where(place: Place, found: re.Match[str]) -> Source | None:
    tensor = re.match(r"nl\.where\((\w+)", found[1])
    statement = place.statement()
    if tensor is None or not isinstance(statement, ast.If):
        return None
    chosen = found[1].replace(", a, b)", f", {tensor[1]}, {tensor[1]})")
    return place.source.put(place.source.node_bounds(statement), f"chosen = {chosen}")


@rule(r"^slice one element out of `(\w+)`")
def _element(place: Place, found: re.Match[str]) -> Source | None:
    call = place.call()
    value = place.operand(found[1]) or (call.args[0] if call and call.args else None)
    end = place.source.node_bounds(value)[1] if value else place.value()[1]
    return place.source.put((end, end), "[0:1, 0:1]")


@rule(r"^pass one column of `\w+`, such as `(.*?)`")
def _one_column(place: Place, found: re.Match[str]) -> Source | None:
    end = place.value()[1]
    return place.source.put((end, end), found[1])


@rule(r"^write ((?:nl|nisa)\.\w+): it is in the other module")
def _other_module(place: Place, found: re.Match[str]) -> Source | None:
    return place.source.put(place.bounds, found[1])


@rule(r"^allocate it with buffer=(nl\.\w+)")
def _in_shared(place: Place, found: re.Match[str]) -> Source | None:
    name = place.source.of(place.span)
    pattern = rf"(\b{name} = nl\.ndarray\(.*buffer=)nl\.\w+"
    return replace(place.source, text=re.sub(pattern, rf"\g<1>{found[1]}", place.source.text))


@rule(r"^copy it to a tensor in nl\.shared_hbm with nisa\.dma_copy")
@rule(r"^copy it to another tensor, and return that")
def _returned_copy(place: Place, found: re.Match[str]) -> Source | None:
    value = place.source.of(place.span)
    if not re.fullmatch(r"\w+(\[.*\])?", value):
        return None
    made = f"made = nl.ndarray({value}.shape, dtype={value}.dtype, buffer=nl.shared_hbm)"
    changed = _again(place.source.put(place.bounds, "made"), place)
    return changed.before(made, f"nisa.dma_copy(dst=made, src={value})")


@rule(r"^use a tile in SBUF as `(\w+)`")
def _not_in_psum(place: Place, found: re.Match[str]) -> Source | None:
    made = place.declaration(found[1])
    keyword = next((k for k in made.keywords if k.arg == "buffer"), None) if made else None
    return place.source.put(place.source.node_bounds(keyword.value), "nl.sbuf") if keyword else None


@rule(r"^give both the same shape, with nl\.broadcast_to")
def _same_shape(place: Place, found: re.Match[str]) -> Source | None:
    call = place.call()
    if call is None or len(call.args) < 2:
        return None
    x, y = map(place.source.shown, call.args[:2])
    bounds = place.source.node_bounds(call.args[1])
    return place.source.put(bounds, f"nl.broadcast_to({y}, {x}.shape)")


@rule(r"^initialise it first, for example with (nisa\.memset)")
def _initialised(place: Place, found: re.Match[str]) -> Source | None:
    name = re.search(r"of `(\w+)`|reads `(\w+)`", place.diagnostic.message)
    called = next(filter(None, name.groups())) if name else ""
    text = re.sub(
        rf"(?m)^(\s*)({called} = nl\.ndarray\(.*)$",
        rf"\1\2\n\1{found[1]}(dst={called}, value=0)",
        place.source.text,
    )
    return replace(place.source, text=text) if called else None


@rule(r"^pass `(\w+)` as well")
def _as_well(place: Place, found: re.Match[str]) -> Source | None:
    return place.given(f"{found[1]}=1.0")


@rule(r"^use `nisa\.tensor_partition_reduce`")
def _across_partitions(place: Place, found: re.Match[str]) -> Source | None:
    call, op, data = place.call(), place.operand("op"), place.operand("data")
    if call is None or op is None or data is None:
        return None
    shown = place.source.shown
    made = (
        f"row = nl.ndarray((1, {shown(data)}.shape[1]), dtype={shown(data)}.dtype, buffer=nl.sbuf)"
    )
    reduce = f"nisa.tensor_partition_reduce(dst=row, op={shown(op)}, data={shown(data)})"
    return _again(place.source.put(place.source.node_bounds(call), reduce), place).before(made)


@rule(r"^indent it by (\d+)")
def _indented(place: Place, found: re.Match[str]) -> Source | None:
    lines = place.source.text.splitlines(keepends=True)
    lines[place.span.line - 1] = " " * int(found[1]) + lines[place.span.line - 1].lstrip()
    return replace(place.source, text="".join(lines))


@rule(r"^since NKI 0\.3 the order is dma_compute\(dst, srcs, reduce_op, scales\)")
def _order(place: Place, found: re.Match[str]) -> Source | None:
    call = place.call()
    if call is None or len(call.args) != 4:
        return None
    dst, srcs, scales, op = map(place.source.shown, call.args)
    bounds = place.source.node_bounds(call)
    return place.source.put(bounds, f"nisa.dma_compute({dst}, {srcs}, {op}, {scales})")
