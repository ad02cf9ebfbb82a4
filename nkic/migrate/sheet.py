"""A file under migration: its tree, the meaning of its names, and the places left unchanged."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib.metadata import version
from typing import Any, TypeVar, cast

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from nkic.base.diagnostics import Diagnostic, Level, LimitHit, make, refusal
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile, Span
from nkic.migrate.facts import Facts, Spot, spot
from nkic.program.program import Instruction, Tensor
from nkic.source.subset import ROOT

# ---- The syntax tree: the nodes inside and around a node ----------------------------------------
# libcst's own `children` and parents use a visitor that rebuilds every node, which is too slow for
# a migration. Its classes are abstract for Python, which makes `isinstance` ten times as slow as a
# look at the type: what asks every node asks for its type.

# Layout: the prefixes of fields that do not affect the meaning of a source.
_LAYOUT = ("whitespace", "lpar", "rpar", "leading", "trailing", "lines_after", "comma", "semicolon")
_PUNCTUATION = {"header", "footer", "equal", "indent", "dot"}
_PUNCTUATION |= {"lbracket", "rbracket", "lbrace", "rbrace"}


@cache
def _child_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = (field.name for field in fields(kind))
    return tuple(n for n in names if not n.startswith(_LAYOUT) and n not in _PUNCTUATION)


@cache
def _is_node(kind: type) -> bool:
    return issubclass(kind, cst.CSTNode)


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    for name in _child_fields(type(node)):
        value = getattr(node, name)
        if _is_node(value.__class__):
            found.append(value)
        elif isinstance(value, tuple | list):
            found += [child for child in value if _is_node(child.__class__)]
    return found


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and all inside, in the order of the text."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(children(node))


def names_in(node: cst.CSTNode) -> Iterator[cst.Name]:
    return (inner for inner in walk(node) if isinstance(inner, cst.Name))


def visible(node: cst.CSTNode, outside: Collection[int] = ()) -> Iterator[cst.CSTNode]:
    """Yield the nodes of this scope, without those in `outside` (by `id`).

    Nested functions and classes are yielded, but not what is inside.
    """
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if id(node) in outside:
            continue
        yield node
        if type(node) not in (cst.FunctionDef, cst.Lambda, cst.ClassDef):
            waiting += reversed(children(node))


def bound(node: cst.CSTNode, outside: Collection[int] = ()) -> set[str]:
    """Return the names that statements in `node` set, without those in `outside` (by `id`)."""
    names: set[str] = set()
    if isinstance(node, cst.FunctionDef):
        names |= {p.name.value for p in walk(node.params) if isinstance(p, cst.Param)}
        node = node.body
    for inner in visible(node, outside):
        names |= set(names_set(inner))
        if isinstance(inner, cst.ImportAlias) and inner.asname is None:
            names.add(code(inner.name).partition(".")[0])
    return names


def names_set(node: cst.CSTNode) -> Iterator[str]:
    """Yield the names that a node itself sets, other than by an import."""
    if isinstance(node, cst.FunctionDef | cst.ClassDef):
        yield node.name.value
    elif isinstance(
        node, cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.For | cst.NamedExpr
    ):
        yield from (name.value for name in target_names(node.target))
    elif isinstance(node, cst.AsName):
        yield from (name.value for name in target_names(node.name))


def target_names(target: cst.CSTNode) -> Iterator[cst.Name]:
    if isinstance(target, cst.Name):
        yield target
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from target_names(element.value)


def only_target(statement: cst.CSTNode | None) -> cst.BaseExpression | None:
    """Return the target of an assignment of any kind, if there is only one."""
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        return statement.targets[0].target
    return statement.target if isinstance(statement, cst.AugAssign | cst.AnnAssign) else None


def code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


# ---- The meaning of names through imports: `nl.add` is `nki.language.add` -----------------------


class Imports:
    """The imports of a file, by the function that contains them.

    A name that a function sets by other means is local to it.
    """

    def __init__(self, tree: cst.Module, around: Callable[[cst.CSTNode], Iterator[cst.CSTNode]]):
        self._tree = tree
        self._around = around
        self._of: dict[int, Mapping[str, str]] = {}

    def meaning(self, node: cst.CSTNode) -> str:
        """Return the qualified name of an expression; "" if it is not imported."""
        if isinstance(node, cst.Attribute):
            owner = self.meaning(node.value)
            return f"{owner}.{node.attr.value}" if owner else ""
        if not isinstance(node, cst.Name):
            return ""
        return next((meant for meant in self._meanings(node) if meant is not None), "")

    def is_builtin(self, node: cst.CSTNode, name: str) -> bool:
        is_it = isinstance(node, cst.Name) and node.value == name and hasattr(builtins, name)
        return is_it and all(meant is None for meant in self._meanings(cast(cst.Name, node)))

    def _meanings(self, name: cst.Name) -> Iterator[str | None]:
        """Yield what each scope around a name makes of it, the innermost first: None if nothing."""
        for scope in self._around(name):
            if type(scope) not in (cst.FunctionDef, cst.Module):
                continue
            if id(scope) not in self._of:
                body = scope.body if isinstance(scope, cst.FunctionDef) else scope
                imported = (pair for node in visible(body) for pair in _imports(node))
                self._of[id(scope)] = dict.fromkeys(bound(scope), "") | dict(imported)
            yield self._of[id(scope)].get(name.value)


def _imports(node: cst.CSTNode) -> Iterator[tuple[str, str]]:
    if isinstance(node, cst.Import):
        for alias in node.names:
            name = code(alias.name)
            first = name.partition(".")[0]
            yield (code(alias.asname.name), name) if alias.asname else (first, first)
    elif isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
        package = "." * len(node.relative) + (code(node.module) if node.module else "")
        for alias in node.names:
            name_node = alias.asname.name if alias.asname else alias.name
            yield code(name_node), f"{package}.{code(alias.name)}"


# --------------------------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound=cst.CSTNode)
LANGUAGE = "nki.language"
ALIASES = {"nki": "nki", LANGUAGE: "nl", "nki.isa": "nisa"}  # the customary aliases
_MODULE_OF = {alias: module for module, alias in ALIASES.items()}


class Sheet:
    """One file, parsed once. `start` is None if its NKI version is unknown."""

    def __init__(
        self, source: SourceFile, facts: Facts, start: Profile | None, target: Profile
    ) -> None:
        self.source = source
        self.facts = facts
        self.start = start
        self.target = target
        self.left: list[Diagnostic] = []
        self.done: Counter[str] = Counter()
        self.wanted: dict[str, str] = {}  # modules to import, by alias
        wrapper = MetadataWrapper(_parsed(source), unsafe_skip_copy=True)
        self.tree = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._parents = {id(child): node for node in walk(self.tree) for child in children(node)}
        self._imports = Imports(self.tree, self.parents)
        self._names = {node.value for node in names_in(self.tree)}
        # The modules that the file imports at its top, each with its local name.
        lines = (line.body for line in self.tree.body if isinstance(line, cst.SimpleStatementLine))
        pairs = (pair for parts in lines for part in parts for pair in _imports(part))
        self._modules = {module.removeprefix(f"{ROOT}."): name for name, module in pairs}

    def span(self, node: cst.CSTNode) -> Span:
        positions = self._positions[node]
        start, end = positions.start, positions.end
        return Span(self.source.path, start.line, start.column + 1, end.line, end.column + 1)

    def spot(self, node: cst.CSTNode) -> Spot:
        return spot(self.span(node))

    def instructions(self, node: cst.CSTNode) -> tuple[Instruction, ...]:
        return self.facts.instructions.get(self.spot(node), ())

    def tensors(self, node: cst.CSTNode) -> tuple[Tensor, ...]:
        return self.facts.tensors.get(self.spot(node), ())

    def name_of(self, node: cst.CSTNode) -> str:
        """Return a qualified name, as `nki.language.add`; "" if it is not imported."""
        return self._imports.meaning(node).removeprefix(f"{ROOT}.")

    def is_builtin(self, node: cst.CSTNode, name: str) -> bool:
        return self._imports.is_builtin(node, name)

    def parents(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        while type(node) is not cst.Module:
            node = self._parents[id(node)]
            yield node

    def around(self, node: cst.CSTNode, kind: type[Kind]) -> Kind | None:
        return next((p for p in self.parents(node) if isinstance(p, kind)), None)

    def fresh(self, base: str) -> str:
        name, count = base, 1
        while name in self._names:
            count += 1
            name = f"{base}_{count}"
        self._names.add(name)
        return name

    def of_module(self, module: str, name: str) -> cst.BaseExpression:
        """Return `module.name`, through the file's own import of the module or an added one."""
        return cst.parse_expression(f"{self._alias(module)}.{name}")

    def _alias(self, module: str) -> str:
        if module not in self._modules:
            alias = self._modules[module] = self.fresh(ALIASES[module])
            self.wanted[alias] = module
        return self._modules[module]

    def nl(self, name: str) -> cst.BaseExpression:
        return self.of_module(LANGUAGE, name)

    def text(self, template: str, *parts: object) -> str:
        """Return the text of a template, `nl.copy({})`, through the file's imports of `nl` and
        `nisa`; parts are expressions and texts.
        """
        texts = (code(part) if isinstance(part, cst.CSTNode) else part for part in parts)
        own = re.sub(r"\b(nl|nisa)(?=\.)", lambda m: self._alias(_MODULE_OF[m[1]]), template)
        return own.format(*texts)

    def parsed(self, template: str, *parts: object) -> Any:
        return cst.parse_expression(self.text(template, *parts))

    def function(self, call: cst.Call) -> str:
        """Return the name of the function of `nki.language` that is called; "" for others."""
        module, _, name = self.name_of(call.func).rpartition(".")
        return name if module == LANGUAGE else ""

    def due(self, since: Profile) -> bool:
        return since <= self.target

    def is_before(self, version: Profile) -> bool:
        """Whether the file is known to be written for a version earlier than this."""
        return self.start is not None and self.start < version

    def leave(self, node: cst.CSTNode, reason: str, help: str, *, sure: bool = True) -> None:
        """Report a place as left unchanged: a warning unless `sure` that it is wrong."""
        level = Level.ERROR if sure else Level.WARNING
        self.left.append(make("not-migrated", reason, self.span(node), help=help, level=level))


def _parsed(source: SourceFile) -> cst.Module:
    try:
        tree = cst.parse_module(source.text)
    except cst.ParserSyntaxError as error:
        line, column = error.editor_line, error.editor_column
        span = Span(source.path, line, column, line, column + 1)
        text = f"libcst {version('libcst')} cannot read this: {error.message}"
        help = "write it in an older form of Python, or install a later libcst"
        raise refusal("not-migrated", text, span, help=help) from None
    limit = sys.getrecursionlimit() // _FRAMES_PER_LEVEL
    depth, _ = _deepest(tree, children)
    if depth > limit:
        node = None
        with suppress(SyntaxError, RecursionError, MemoryError):  # Python may give up as well
            _, node = _deepest(ast.parse(source.text), _placed)
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        text = f"the nesting is too deep to be rewritten: {depth} levels, and the limit is {limit}"
        help = "assign parts of the expression to variables"
        span = Span(source.path, line, column, line, column + 1)
        raise LimitHit([make("nesting-too-deep", text, span, help=help)])
    return tree


_FRAMES_PER_LEVEL = 4  # of Python's stack, in libcst's visitors


def _deepest(root: Any, inside: Callable[[Any], Sequence[Any]]) -> tuple[int, Any]:
    """Return the depth of a tree, and its first node of that depth."""
    depth, level = 0, [root]
    while below := [child for node in level for child in inside(node)]:
        depth, level = depth + 1, below
    return depth, level[0]


def _placed(node: ast.AST) -> list[ast.AST]:
    return [child for child in ast.iter_child_nodes(node) if hasattr(child, "lineno")]


# ---- The function around a node, and the names that a part of a function reads ------------------


def scope_of(sheet: Sheet, node: cst.CSTNode) -> cst.FunctionDef | None:
    """Return the function around a node; None at the top of the file and in a class."""
    around = (p for p in sheet.parents(node) if isinstance(p, cst.FunctionDef | cst.ClassDef))
    nearest = next(around, None)
    return nearest if isinstance(nearest, cst.FunctionDef) else None


def read_in(node: cst.CSTNode, outside: Collection[int] = ()) -> set[str]:
    """Return the names that are read in `node`, nested functions included, without `outside`."""
    body = node.body if isinstance(node, cst.FunctionDef) else node
    return set(_read(body, outside))


def _read(node: cst.CSTNode, outside: Collection[int]) -> Iterator[str]:
    if id(node) in outside:
        return
    if isinstance(node, cst.Name):
        yield node.value
    for child in _read_children(node):
        yield from _read(child, outside)


def _read_children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the children that are read: no assignment targets, attribute names, …"""
    if isinstance(node, cst.Attribute | cst.Arg):
        yield node.value
    elif isinstance(node, cst.Param | cst.FunctionDef | cst.ClassDef):
        yield from (child for child in children(node) if not isinstance(child, cst.Name))
    elif isinstance(node, cst.AssignTarget | cst.For | cst.AnnAssign | cst.NamedExpr):
        yield from (child for child in children(node) if child is not node.target)
        yield from _read_by_setting(node.target)
    else:
        yield from children(node)


def _read_by_setting(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the parts of a target that are read: those that are not plain names."""
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _read_by_setting(element.value)
    elif not isinstance(target, cst.Name):
        yield target
