"""A file under migration: its tree, the meaning of its names, and the places left unchanged."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields
from functools import cache
from importlib.metadata import version

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from nkic.base.diagnostics import Diagnostic, Level, make, refusal
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile, Span
from nkic.migrate.facts import Facts, Spot, spot
from nkic.program.program import Instruction, Tensor
from nkic.source.subset import ROOT

# ---- The syntax tree: the nodes inside and around a node ----------------------------------------
# libcst's own `children` and parents use a visitor that rebuilds every node, which is too slow for
# a migration.

# Layout: the prefixes of fields that do not affect the meaning of a source.
_LAYOUT = ("whitespace", "lpar", "rpar", "leading", "trailing", "lines_after", "comma", "semicolon")
_PUNCTUATION = {
    "header",
    "footer",
    "equal",
    "indent",
    "dot",
    "lbracket",
    "rbracket",
    "lbrace",
    "rbrace",
}


@cache
def _child_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = (field.name for field in fields(kind))
    return tuple(n for n in names if not n.startswith(_LAYOUT) and n not in _PUNCTUATION)


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the direct children of a node, without layout."""
    for name in _child_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif isinstance(value, tuple | list):
            yield from (child for child in value if isinstance(child, cst.CSTNode))


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the node and all its descendants."""
    yield node
    for child in children(node):
        yield from walk(child)


def names_in(node: cst.CSTNode) -> Iterator[cst.Name]:
    """Yield all names in a node, those of attributes and keywords included."""
    return (inner for inner in walk(node) if isinstance(inner, cst.Name))


def visible(node: cst.CSTNode, outside: Collection[int] = ()) -> Iterator[cst.CSTNode]:
    """Yield the nodes of this scope, without those in `outside` (by `id`).

    Nested functions and classes are yielded, but not what is inside.
    """
    if id(node) in outside:
        return
    yield node
    if not isinstance(node, cst.FunctionDef | cst.Lambda | cst.ClassDef):
        for child in children(node):
            yield from visible(child, outside)


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


def parents(tree: cst.Module) -> dict[int, cst.CSTNode]:
    """Return the parent of each node, by the node's `id`."""
    return {id(child): node for node in walk(tree) for child in children(node)}


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
    """Yield the names that an assignment target sets."""
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
    """Return the source text of a node."""
    return cst.Module([]).code_for_node(node)


# ---- The meaning of names through imports: `nl.add` is `nki.language.add` -----------------------

Scope = cst.FunctionDef | cst.Module


class Imports:
    """The imports of a file, by the function that contains them.

    A name that a function sets by other means is local to it.
    """

    def __init__(self, tree: cst.Module, around: Callable[[cst.CSTNode], Iterator[cst.CSTNode]]):
        self._tree = tree
        self._around = around
        self._of: dict[int, Mapping[str, str]] = {}
        self._set: dict[int, set[str]] = {}

    def meaning(self, node: cst.CSTNode) -> str:
        """Return the qualified name of an expression; "" if it is not imported."""
        if isinstance(node, cst.Attribute):
            owner = self.meaning(node.value)
            return f"{owner}.{node.attr.value}" if owner else ""
        if not isinstance(node, cst.Name):
            return ""
        for scope in self._scopes(node):
            if node.value in self._imported(scope):
                return self._imported(scope)[node.value]
            if node.value in self._bound(scope):
                return ""
        return ""

    def is_builtin(self, node: cst.CSTNode, name: str) -> bool:
        """Whether the expression is Python's built-in `name`."""
        return (
            isinstance(node, cst.Name)
            and node.value == name
            and hasattr(builtins, name)
            and not any(
                name in self._imported(scope) or name in self._bound(scope)
                for scope in self._scopes(node)
            )
        )

    def _scopes(self, node: cst.CSTNode) -> Iterator[Scope]:
        for parent in self._around(node):
            if isinstance(parent, cst.FunctionDef | cst.Module):
                yield parent

    def _imported(self, scope: Scope) -> Mapping[str, str]:
        if id(scope) not in self._of:
            body = scope.body if isinstance(scope, cst.FunctionDef) else scope
            self._of[id(scope)] = {
                name: meant for node in visible(body) for name, meant in _imports(node)
            }
        return self._of[id(scope)]

    def _bound(self, scope: Scope) -> set[str]:
        if id(scope) not in self._set:
            self._set[id(scope)] = bound(scope)
        return self._set[id(scope)]


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

LANGUAGE = "nki.language"
ALIASES = {"nki": "nki", LANGUAGE: "nl", "nki.isa": "nisa"}  # the customary aliases


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
        self._parents = parents(self.tree)
        self._imports = Imports(self.tree, self.parents)
        self._names = {node.value for node in names_in(self.tree)}
        self._modules = dict(_modules(self.tree))

    # ---- places and names ------------------------------------------------------------------

    def span(self, node: cst.CSTNode) -> Span:
        """Return the span of a node in the file as it was read."""
        positions = self._positions[node]
        start, end = positions.start, positions.end
        return Span(self.source.path, start.line, start.column + 1, end.line, end.column + 1)

    def spot(self, node: cst.CSTNode) -> Spot:
        """Return the span as a key of `facts`."""
        return spot(self.span(node))

    def instructions(self, node: cst.CSTNode) -> tuple[Instruction, ...]:
        """Return the instructions that were recorded at a node."""
        return self.facts.instructions.get(self.spot(node), ())

    def tensors(self, node: cst.CSTNode) -> tuple[Tensor, ...]:
        """Return the tensors that were made at a node."""
        return self.facts.tensors.get(self.spot(node), ())

    def name_of(self, node: cst.CSTNode) -> str:
        """Return the qualified name of an expression, as `nki.language.add`; "" if it is not
        imported.
        """
        return self._imports.meaning(node).removeprefix(f"{ROOT}.")

    def is_builtin(self, node: cst.CSTNode, name: str) -> bool:
        """Whether the expression is Python's built-in `name`."""
        return self._imports.is_builtin(node, name)

    def parents(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the nodes around one, the innermost first."""
        while not isinstance(node, cst.Module):
            node = self._parents[id(node)]
            yield node

    def fresh(self, base: str) -> str:
        """Return a name that the file does not use."""
        name, count = base, 1
        while name in self._names:
            count += 1
            name = f"{base}_{count}"
        self._names.add(name)
        return name

    def of_module(self, module: str, name: str) -> cst.BaseExpression:
        """Return `module.name`, through the file's own import of the module, or one that is
        added.
        """
        alias = self._modules.get(module)
        if alias is None:
            alias = self.fresh(ALIASES[module])
            self._modules[module] = alias
            self.wanted[alias] = module
        return cst.parse_expression(f"{alias}.{name}")

    def nl(self, name: str) -> cst.BaseExpression:
        """Return `nl.name`."""
        return self.of_module(LANGUAGE, name)

    def nisa(self, name: str) -> cst.BaseExpression:
        """Return `nisa.name`."""
        return self.of_module("nki.isa", name)

    def function(self, call: cst.Call) -> str:
        """Return the name of the function of `nki.language` that is called; "" for others."""
        module, _, name = self.name_of(call.func).rpartition(".")
        return name if module == LANGUAGE else ""

    # ---- rules and what they left ----------------------------------------------------------

    def due(self, since: Profile) -> bool:
        """Whether a change of version `since` applies to the target version."""
        return since <= self.target

    def is_before(self, version: Profile) -> bool:
        """Whether the file is known to be written for a version earlier than this."""
        return self.start is not None and self.start < version

    def leave(self, node: cst.CSTNode, reason: str, help: str, *, sure: bool = True) -> None:
        """Report a place as left unchanged: an error, or a warning if it may be correct as it
        is.
        """
        level = Level.ERROR if sure else Level.WARNING
        self.left.append(make("not-migrated", reason, self.span(node), help=help, level=level))


def _parsed(source: SourceFile) -> cst.Module:
    """Return the tree. Raises `CompileFailed` for Python that libcst cannot parse."""
    try:
        return cst.parse_module(source.text)
    except cst.ParserSyntaxError as error:
        line, column = error.editor_line, error.editor_column
        span = Span(source.path, line, column, line, column + 1)
        text = f"libcst {version('libcst')} cannot read this: {error.message}"
        help = "write it in an older form of Python, or install a later libcst"
        raise refusal("not-migrated", text, span, help=help) from None


def _modules(tree: cst.Module) -> Iterator[tuple[str, str]]:
    """Yield the modules that the file imports at its top, each with its local name."""
    for statement in tree.body:
        for item in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(item, cst.Import):
                for alias in item.names:
                    if alias.asname or "." not in _dotted(alias.name):
                        yield _dotted(alias.name), _alias(alias)
            elif isinstance(item, cst.ImportFrom) and not isinstance(item.names, cst.ImportStar):
                package = _dotted(item.module) if item.module and not item.relative else ""
                for alias in item.names:
                    yield f"{package}.{_dotted(alias.name)}", _alias(alias)


def _alias(name: cst.ImportAlias) -> str:
    bound = name.asname.name if name.asname else name.name
    return _dotted(bound)


def _dotted(node: cst.CSTNode) -> str:
    return code(node).removeprefix(f"{ROOT}.")


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
    if isinstance(node, cst.Attribute):
        yield node.value
    elif isinstance(node, cst.Arg | cst.Param | cst.FunctionDef | cst.ClassDef):
        yield from (
            child
            for child in children(node)
            if not isinstance(child, cst.Name) or child is _value(node)
        )
    elif isinstance(node, cst.AssignTarget | cst.For | cst.AnnAssign | cst.NamedExpr):
        yield from (child for child in children(node) if child is not node.target)
        yield from _read_by_setting(node.target)
    else:
        yield from children(node)


def _value(node: cst.CSTNode) -> cst.CSTNode | None:
    return node.value if isinstance(node, cst.Arg) else None


def _read_by_setting(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the parts of a target that are read: those that are not plain names."""
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _read_by_setting(element.value)
    elif not isinstance(target, cst.Name):
        yield target
