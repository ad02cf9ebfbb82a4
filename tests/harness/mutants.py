"""Kernels with one or two random mistakes of the kind that people make.

A mutation edits the source text at a place that Python's own parser finds: a renamed variable, a
dropped or doubled argument, swapped operands, another number, dtype, operator, method or buffer, a
deleted or repeated line.
"""

import ast
import warnings
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple, cast

DTYPES = ("float32", "bfloat16", "float16", "int32", "int8", "uint32", "tfloat32", "float8_e4m3")
BUFFERS = ("sbuf", "psum", "hbm", "shared_hbm", "private_hbm")
OPERATORS = ("add", "subtract", "multiply", "maximum", "exp", "logical_and", "bitwise_or", "rsqrt")
NUMBERS = ("0", "1", "-1", "3", "127", "129", "512", "4096", "1.5", "None", "10**12", '"a"')
BINARY = (" + ", " - ", " * ", " // ", " % ", " / ", " ** ", " @ ", " << ", " | ")
COMPARE = (" == ", " != ", " < ", " <= ", " > ", " in ", " is ")
VALUES = ("None", "[]", "()", "{}", "lambda: 0", "nl", "nisa", "range(3)", '"text"', "float('nan')")


class Edit(NamedTuple):
    """Replace the text from `start` to `end` by `new`."""

    start: int
    end: int
    new: str


Make = Callable[[Random, ast.AST, "Source"], Edit | None]


class Source:
    """A text with its syntax tree and the spans of its nodes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.lines = [0]
        for line in text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.nodes = [node for node in ast.walk(self.tree) if hasattr(node, "end_col_offset")]
        self.names = sorted({n.id for n in self.nodes if isinstance(n, ast.Name)})

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the start and end of a node; sources of kernels are almost pure ASCII."""
        place = cast(ast.expr, node)
        start = self.lines[place.lineno - 1] + place.col_offset
        return start, self.lines[(place.end_lineno or 1) - 1] + (place.end_col_offset or 0)

    def of(self, node: ast.AST) -> str:
        return slice_of(self.text, self.span(node))


def slice_of(text: str, span: tuple[int, int]) -> str:
    """Return the text between two positions."""
    return text[span[0] : span[1]]


def mutated(text: str, rng: Random) -> str:
    """Return the source with one mistake, sometimes two; it may be unchanged."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        text = _changed(Source(text), rng)
    return text


def _changed(source: Source, rng: Random) -> str:
    """Return the text after one edit that keeps it valid Python, as most mistakes do."""
    while True:
        edit = rng.choice(_KINDS)(rng, rng.choice(source.nodes), source)
        if edit is not None:
            text = source.text[: edit.start] + edit.new + source.text[edit.end :]
            if _is_python(text):
                return text


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError:
        return False
    return True


def _renamed(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    if not isinstance(node, ast.Name):
        return None
    return Edit(*source.span(node), rng.choice((*source.names * 2, node.id + "x")))


def _dropped(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    """Drop an argument of a call, or repeat it."""
    if not isinstance(node, ast.Call) or not (node.args or node.keywords):
        return None
    parts = [source.of(part) for part in [*node.args, *node.keywords]]
    if rng.random() < 0.8:
        parts.pop(rng.randrange(len(parts)))
    else:
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(parts))
    return Edit(*source.span(node), f"{source.of(node.func)}({', '.join(parts)})")


def _keyword(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    """Misspell a keyword, or remove it so that its value becomes positional."""
    if not isinstance(node, ast.keyword) or node.arg is None:
        return None
    value = source.of(node.value)
    return Edit(*source.span(node), rng.choice((value, f"{node.arg}s={value}", f"mask={value}")))


def _swapped(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    """Swap two arguments, operands or elements."""
    parts = _parts(node)
    if len(parts) < 2:
        return None
    first, second = sorted(rng.sample(range(len(parts)), 2))
    (a, b), (c, d) = source.span(parts[first]), source.span(parts[second])
    if b > c:
        return None
    return Edit(a, d, source.text[c:d] + source.text[b:c] + source.text[a:b])


def _parts(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Call):
        return [*node.args, *(keyword.value for keyword in node.keywords)]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Tuple | ast.List):
        return [*node.elts]
    return [node.targets[0], node.value] if isinstance(node, ast.Assign) else []


def _operator(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    signs: tuple[str, ...]
    if isinstance(node, ast.BinOp):
        left, right, signs = node.left, node.right, BINARY
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        left, right, signs = node.left, node.comparators[0], COMPARE
    else:
        return None
    start, end = source.span(left)[1], source.span(right)[0]
    return Edit(start, end, rng.choice(signs)) if _bare(source.text[start:end]) else None


def _bare(text: str) -> bool:
    """Return whether the text between two operands is only the operator, without parentheses."""
    return "(" not in text and ")" not in text


def _number(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    if not isinstance(node, ast.Constant) or isinstance(node.value, str):
        return None
    value = node.value
    near = (str(value + 1), str(value * 2), str(value // 2)) if type(value) is int else ()
    return Edit(*source.span(node), rng.choice((*NUMBERS, *near, *near, *near)))


def _attribute(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    """Replace `nl.float32` by another dtype, or misspell a method or field."""
    if not isinstance(node, ast.Attribute):
        return None
    end = source.span(node)[1]
    known = next((k for k in (DTYPES, BUFFERS, OPERATORS) if node.attr in k), ())
    wrong = (node.attr + "s", node.attr[:-1] or "q", "__class__", "shape", "dtype", "T")
    return Edit(end - len(node.attr), end, rng.choice(known or wrong))


def _value(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    """Replace an expression by a constant, or by another expression of the file."""
    if not isinstance(node, ast.expr):
        return None
    others = [other for other in source.nodes if isinstance(other, ast.expr)]
    new = rng.choice(VALUES) if rng.random() < 0.4 else source.of(rng.choice(others))
    return Edit(*source.span(node), new)


def _subscript(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    """Remove a subscript, or repeat it."""
    if not isinstance(node, ast.Subscript):
        return None
    owner = source.of(node.value)
    index = source.text[source.span(node.value)[1] : source.span(node)[1]]
    return Edit(*source.span(node), rng.choice((owner, owner + index + index)))


def _line(rng: Random, node: ast.AST, source: Source) -> Edit | None:
    """Delete a statement, repeat it, or reduce its indentation."""
    if not isinstance(node, ast.stmt):
        return None
    start, end = source.span(node)
    indent = " " * (start - source.lines[node.lineno - 1])
    text = source.text[start:end]
    return Edit(start, end, rng.choice(("pass", "pass", f"{text}\n{indent}{text}", "return", "")))


_KINDS: tuple[Make, ...] = (
    *(_renamed, _dropped, _keyword, _swapped, _operator),
    *(_number, _attribute, _value, _subscript, _line),
)


def mutants(sources: list[str], seed: int, count: int) -> Iterator[str]:
    """Return this number of mutants, cycling through the sources."""
    rng = Random(seed)
    for number in range(count):
        yield mutated(sources[number % len(sources)], rng)
