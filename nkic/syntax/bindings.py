"""What resolve adds to the syntax tree: modules, their names, the kernel and what it reaches."""

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

STDLIB = f"{SHIPPED}.stdlib>/"  # the folder of our standard library, in paths of spans


class BindingKind(Enum):
    """How a module binds a name."""

    FUNCTION = "function"
    CLASS = "class"
    IMPORT = "import"
    VALUE = "value"  # anything that has to be evaluated


@dataclass(frozen=True)
class Import:
    """What an import statement asks for: a module, or a member of it.

    `request` is the module as written, leading dots included. A member may turn out to be a
    module too (`from package import module`).
    """

    request: str
    member: str | None = None


@dataclass(frozen=True)
class Binding:
    """A name of a module.

    `statements` are the indices of the statements that define the name or change its value
    (`TABLE["a"] = 1`), in order. `node` is the definition of a function or class, `target` what
    an import asks for.
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

    `stars` are the modules of its `from … import *` statements, last first, `imports` what the
    others ask for, by the name that they bind. `trusted` marks files of our own standard library.
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
        """Every call by the place of its closing parenthesis, which no other call shares."""
        found = (node for node in walk(self.tree) if isinstance(node, nodes.Call))
        return {(call.span.end_line, call.span.end_column): call for call in found}

    @cached_property
    def declared_global(self) -> frozenset[str]:
        """Names that functions declare `global`, which an assignment there defines."""
        found = (node.names for node in walk(self.tree) if isinstance(node, nodes.Global))
        return frozenset().union(*found)

    @cached_property
    def statements(self) -> tuple[nodes.Statement, ...]:
        """Every statement, those inside others included, in source order."""
        found = [node for node in walk(self.tree) if isinstance(node, nodes.Statement)]
        return tuple(sorted(found, key=lambda node: node.span[1:3]))

    @cached_property
    def _starts(self) -> tuple[tuple[int, int], ...]:
        """Where each of `statements` starts."""
        return tuple(node.span[1:3] for node in self.statements)

    @cached_property
    def _around(self) -> tuple[int, ...]:
        """The index of the statement that holds each of `statements`; -1 at module level."""
        found: list[int] = []
        for index, node in enumerate(self.statements):
            outer = index - 1
            while outer >= 0 and self.statements[outer].span[3:] < node.span[3:]:
                outer = found[outer]
            found.append(outer)
        return tuple(found)

    def _holding(self, span: Span) -> Iterator[nodes.Statement]:
        """The statements that hold `span`, innermost first."""
        index = bisect.bisect_right(self._starts, span[1:3]) - 1
        while index >= 0:
            if self.statements[index].span[3:] >= span[3:]:
                yield self.statements[index]
            index = self._around[index]

    def statement_at(self, span: Span) -> nodes.Statement | None:
        """The innermost statement that starts at or before `span` and holds it."""
        return next(self._holding(span), None)

    def loops_around(self, span: Span) -> tuple[nodes.For, ...]:
        """The `for` loops of one function whose bodies hold `span`, outermost first."""
        found: list[nodes.For] = []
        for node in self._holding(span):
            if isinstance(node, nodes.FunctionDef):
                break
            if isinstance(node, nodes.For) and node.body[0].span[1:3] <= span[1:3]:
                found.append(node)
        return tuple(reversed(found))


@dataclass(frozen=True)
class ProvidedModule:
    """A module that nkic itself provides, such as `nki.language` or `math`."""

    name: str


@dataclass(frozen=True)
class HostModule:
    """A module that is neither kernel source nor provided: `torch`, `os`.

    A kernel may import it; using it is an error.
    """

    name: str


Found = SourceModule | ProvidedModule | HostModule


class Modules(Protocol):
    """Every module that is read, and the way to more."""

    @property
    def modules(self) -> Mapping[str, SourceModule]:
        """By the path of their file, in the order of reading."""
        ...

    def add(self, name: str, source: SourceFile, *, trusted: bool = False) -> SourceModule:
        """Reads a file, unless it is read already."""
        ...

    def find(self, request: str, importer: SourceModule) -> Found:
        """The module that `request`, as written, means in an importing module."""
        ...

    def binding(self, module: SourceModule, name: str) -> tuple[SourceModule, Binding | None]:
        """Where a name of a module is bound: in itself or where its star imports lead."""
        ...

    def provided_stars(self, module: SourceModule) -> tuple[str, ...]:
        """The provided modules whose every name a module imports with a star."""
        ...


@dataclass(frozen=True)
class Kernel:
    """A function that can be compiled: `wrapper` is the decorator, as in `nki.jit`, or "".

    `scheduled` is the call of `with_schedule` that made it, if one did. A kernel inside of a
    function has that as `maker`; `making` is the call of it that was asked for: `scaled_by(3)`.
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
        """The function's head as written, on one line, without `def` and the colon."""
        text_of, returns = self.module.source.text_of, self.node.returns
        lines = (line.partition("#")[0] for line in text_of(self.node.args.span).split("\n"))
        parameters = " ".join(" ".join(lines).split()).rstrip(",")
        return f"{self.name}({parameters})" + (f" -> {text_of(returns.span)}" if returns else "")


@dataclass(frozen=True)
class Resolved:
    """A kernel with everything that it can reach, checked against the kernel subset.

    `reached` are the definitions that kernel code can call. `library` reads further modules if
    the kernel finds its way to them only while it is evaluated.
    """

    kernel: Kernel
    library: Modules
    reached: tuple[nodes.FunctionDef | nodes.ClassDef, ...]
    profile: Profile

    def call_at(self, chain: CallChain) -> nodes.Call | None:
        """The call expression that a chain's innermost place is, if it is one."""
        module = self.library.modules.get(chain.span.path)
        place = (chain.span.end_line, chain.span.end_column)
        call = module.calls.get(place) if module else None
        # Of a call that spans lines, Python gives the part from the method's name on.
        return call if call is not None and call.span.covers(chain.span) else None

    def locate(
        self,
        chain: CallChain,
        parameter: str,
        position: int | None = None,
        within: Collection[str] = (),
    ) -> Span:
        """Where the argument for `parameter` stands in the call at `chain`.

        `position` is its place among positional arguments, if it can be given so. Where the
        call does not show it (defaults, `*args`), the whole call. Where the argument is itself a
        call with a keyword that is one of `within`, that one.
        """
        call = self.call_at(chain)
        found = _argument(call, parameter, position) if call is not None else None
        if found is None:
            return chain.span
        value: nodes.Node = found.value if isinstance(found, nodes.Keyword) else found
        inner = value.keywords if isinstance(value, nodes.Call) else ()
        return next((one.span for one in inner if one.arg in within), found.span)


def _argument(call: nodes.Call, parameter: str, position: int | None) -> nodes.Node | None:
    """What the call shows for `parameter`."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword
    if position is None or position >= len(call.args):
        return None
    before = call.args[: position + 1]
    starred = any(isinstance(argument, nodes.Starred) for argument in before)
    return None if starred else before[-1]


def primary(chain: CallChain) -> CallChain:
    """The innermost place in the user's own files; `chain` itself if there is none."""
    at: CallChain | None = chain
    while at is not None and at.span.path.startswith(SHIPPED):
        at = at.caller
    return at or chain
