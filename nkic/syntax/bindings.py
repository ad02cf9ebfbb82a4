"""The data that resolve adds to the syntax tree: modules, their names, the kernel, its reach."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Protocol

from nkic.base.profiles import Profile
from nkic.base.source import SHIPPED, CallChain, SourceFile, Span
from nkic.syntax import nodes
from nkic.syntax.walk import walk

STDLIB = f"{SHIPPED}.stdlib>/"  # the directory of nkic's standard library, in the paths of spans


class BindingKind(Enum):
    """How a module binds a name."""

    FUNCTION = "function"
    CLASS = "class"
    IMPORT = "import"
    VALUE = "value"  # a value that must be evaluated


@dataclass(frozen=True)
class Import:
    """The target of an import statement: a module, or a member of a module.

    `request` is the module as written, including leading dots. A member may be a submodule (`from
    package import module`).
    """

    request: str
    member: str | None = None


@dataclass(frozen=True)
class Binding:
    """A name of a module.

    `statements` holds the indices of the statements that define the name or change its value
    (`TABLE["a"] = 1`), in order. `node` is the definition of a function or class, `target` the
    target of an import.
    """

    name: str
    kind: BindingKind
    statements: tuple[int, ...]
    span: Span
    node: nodes.FunctionDef | nodes.ClassDef | None = None
    target: Import | None = None


@dataclass(frozen=True, eq=False)
class SourceModule:
    """A file of kernel source with the names that it binds.

    `stars` lists the modules of its `from … import *` statements, last first; `imports` maps names
    to the targets of the other imports that bind them. `trusted` marks files of nkic's own standard
    library.
    """

    name: str
    source: SourceFile
    tree: nodes.Module
    bindings: Mapping[str, Binding]
    stars: tuple[str, ...] = ()
    trusted: bool = False
    imports: Mapping[str, Sequence[Import]] = field(default_factory=dict)

    @cached_property
    def calls(self) -> Mapping[tuple[int, int], nodes.Call]:
        """Every call by the position of its closing parenthesis, which is unique to it."""
        nodes_found = (node for node in walk(self.tree) if isinstance(node, nodes.Call))
        return {(call.span.end_line, call.span.end_column): call for call in nodes_found}

    @cached_property
    def declared_global(self) -> frozenset[str]:
        """The names that functions declare `global`, which an assignment there defines."""
        declared = (node.names for node in walk(self.tree) if isinstance(node, nodes.Global))
        return frozenset().union(*declared)

    @cached_property
    def statements(self) -> tuple[nodes.Statement, ...]:
        """All statements, including nested ones, in source order."""
        unordered = [node for node in walk(self.tree) if isinstance(node, nodes.Statement)]
        return tuple(sorted(unordered, key=lambda node: node.span[1:3]))

    @cached_property
    def _starts(self) -> tuple[tuple[int, int], ...]:
        """The start positions of `statements`."""
        return tuple(node.span[1:3] for node in self.statements)

    @cached_property
    def _around(self) -> tuple[int, ...]:
        """The index of the enclosing statement of each of `statements`; -1 at module level."""
        parents: list[int] = []
        for index, node in enumerate(self.statements):
            outer = index - 1
            while outer >= 0 and self.statements[outer].span[3:] < node.span[3:]:
                outer = parents[outer]
            parents.append(outer)
        return tuple(parents)

    def _holding(self, span: Span) -> Iterator[nodes.Statement]:
        """Yield the statements that contain `span`, innermost first."""
        index = bisect.bisect_right(self._starts, span[1:3]) - 1
        while index >= 0:
            if self.statements[index].span[3:] >= span[3:]:
                yield self.statements[index]
            index = self._around[index]

    def statement_at(self, span: Span) -> nodes.Statement | None:
        """Return the innermost statement that contains `span`."""
        return next(self._holding(span), None)

    def function_at(
        self, name: str, line: int, column: int = 0
    ) -> nodes.FunctionDef | nodes.Lambda:
        """Return the function `name` whose `def`, `lambda` or first decorator is on a line.

        Of several lambdas, it is the innermost one that has `column`, which may be in a later line.
        Raises `LookupError` if there is none, or more than one.
        """
        functions = [node for node in walk(self.tree) if _is_function_at(node, name, line)]
        if len(functions) > 1 and name == "<lambda>":
            starts = [node.span.column for node in functions if node.span.column <= column]
            functions = [node for node in functions if node.span.column == max(starts, default=0)]
        if len(functions) != 1:
            count = f"{len(functions)} functions" if functions else "no function"
            raise LookupError(f"{self.source.path} has {count} {name} in line {line}")
        only = functions[0]
        assert isinstance(only, nodes.FunctionDef | nodes.Lambda)
        return only

    def loops_around(self, span: Span) -> tuple[nodes.For, ...]:
        """Return the `for` loops of one function whose bodies contain `span`, outermost first."""
        loops: list[nodes.For] = []
        for node in self._holding(span):
            if isinstance(node, nodes.FunctionDef):
                break
            if isinstance(node, nodes.For) and node.body[0].span[1:3] <= span[1:3]:
                loops.append(node)
        return tuple(reversed(loops))


def _is_function_at(node: nodes.Node, name: str, line: int) -> bool:
    if isinstance(node, nodes.Lambda):
        return name == "<lambda>" and node.span.line == line
    if not isinstance(node, nodes.FunctionDef) or node.name != name:
        return False
    return line in (node.span.line, *(decorator.span.line for decorator in node.decorators))


@dataclass(frozen=True)
class ProvidedModule:
    """A module that nkic itself implements, such as `nki.language` or `math`."""

    name: str


@dataclass(frozen=True)
class HostModule:
    """A module that is neither kernel source nor implemented by nkic: `torch`, `os`.

    A kernel may import it, but using it is an error.
    """

    name: str


Found = SourceModule | ProvidedModule | HostModule


class Modules(Protocol):
    """The modules that were read, and access to more."""

    @property
    def modules(self) -> Mapping[str, SourceModule]:
        """The modules by the path of their file, in the order of reading."""
        ...

    def add(self, name: str, source: SourceFile, *, trusted: bool = False) -> SourceModule:
        """Read a file, unless it was read before."""
        ...

    def find(self, request: str, importer: SourceModule) -> Found:
        """Return the module that `request`, as written, refers to in an importing module."""
        ...

    def binding(self, module: SourceModule, name: str) -> tuple[SourceModule, Binding | None]:
        """Return where a name of a module is bound: in itself, or in a module it star-imports."""
        ...

    def provided_stars(self, module: SourceModule) -> tuple[str, ...]:
        """Return the provided modules that a module star-imports."""
        ...


@dataclass(frozen=True)
class Kernel:
    """A function that can be compiled. `wrapper` is its decorator, as in `nki.jit`, or "".

    `scheduled` is the span of the `with_schedule` call that produced it, if any. For a kernel
    defined inside a function, `maker` is that function, and `making` the requested call of it:
    `scaled_by(3)`.
    """

    name: str
    module: SourceModule
    node: nodes.FunctionDef
    wrapper: str = ""
    scheduled: Span | None = None
    maker: nodes.FunctionDef | None = None
    making: str = ""

    @property
    def signature(self) -> str:
        """The function's signature as written, on one line, without `def` and the colon."""
        text_of, returns = self.module.source.text_of, self.node.returns
        lines = (line.partition("#")[0] for line in text_of(self.node.args.span).split("\n"))
        parameters = " ".join(" ".join(lines).split()).rstrip(",")
        return f"{self.name}({parameters})" + (f" -> {text_of(returns.span)}" if returns else "")


@dataclass(frozen=True)
class Resolved:
    """A kernel with all code that it can reach, checked against the kernel subset.

    `reached` holds the definitions that kernel code can call. `library` reads further modules that
    are discovered only during evaluation.
    """

    kernel: Kernel
    library: Modules
    reached: tuple[nodes.FunctionDef | nodes.ClassDef, ...]
    profile: Profile

    def call_at(self, chain: CallChain) -> nodes.Call | None:
        """Return the call expression at a chain's innermost position, if it is a call."""
        module = self.library.modules.get(chain.span.path)
        end = (chain.span.end_line, chain.span.end_column)
        call = module.calls.get(end) if module else None
        # Python reports a call of several lines from the method's name on.
        return call if call is not None and call.span.covers(chain.span) else None

    def locate(
        self,
        chain: CallChain,
        parameter: str,
        position: int | None = None,
        within: Collection[str] = (),
    ) -> Span:
        """Return the span of the argument for `parameter` in the call at `chain`.

        `position` is the parameter's index among positional arguments, if it can be passed so. If
        the call does not show the argument (defaults, `*args`), return the span of the whole call.
        If the argument is itself a call with a keyword in `within`, return the span of that
        keyword.
        """
        call = self.call_at(chain)
        argument = _argument(call, parameter, position) if call is not None else None
        if argument is None:
            return chain.span
        value: nodes.Node = argument.value if isinstance(argument, nodes.Keyword) else argument
        inner = value.keywords if isinstance(value, nodes.Call) else ()
        return next((keyword.span for keyword in inner if keyword.arg in within), argument.span)


def _argument(call: nodes.Call, parameter: str, position: int | None) -> nodes.Node | None:
    """Return the argument for `parameter` as written in the call, or None."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword
    if position is None or position >= len(call.args):
        return None
    before = call.args[: position + 1]
    starred = any(isinstance(argument, nodes.Starred) for argument in before)
    return None if starred else before[-1]


def primary(chain: CallChain) -> CallChain:
    """Return the innermost position in the user's own files; `chain` itself if there is none."""
    at: CallChain | None = chain
    while at is not None and at.span.path.startswith(SHIPPED):
        at = at.caller
    return at or chain
