"""A file under migration: its tree, the meaning of its names, and the places left unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from nkic.base.diagnostics import Diagnostic, Level, make, refusal
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile, Span
from nkic.ir.program import Instruction
from nkic.ir.tensors import Tensor
from nkic.migrate.facts import Facts, Spot, spot
from nkic.migrate.imported import Imports
from nkic.migrate.tree import code, names_in, parents
from nkic.resolve.former import ROOT

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
