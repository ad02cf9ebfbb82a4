"""The data that resolve adds to the syntax tree: modules, their names, the kernel, its reach."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cached_property
from typing import Protocol

from nkic.base.profiles import Profile
from nkic.base.source import SHIPPED, CallChain, SourceFile, Span
from nkic.source import nodes
from nkic.source.nodes import Node, walk

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
        unordered = [node for node in walk(self.tree) if isinstance(node, nodes.Statement)]
        return tuple(sorted(unordered, key=lambda node: node.span[1:3]))

    @cached_property
    def _starts(self) -> tuple[tuple[int, int], ...]:
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

    def provided_stars(self, module: SourceModule) -> tuple[str, ...]: ...


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
        argument = argument_of(call, parameter, position) if call is not None else None
        if argument is None:
            return chain.span
        value: nodes.Node = argument.value if isinstance(argument, nodes.Keyword) else argument
        inner = value.keywords if isinstance(value, nodes.Call) else ()
        return next((keyword.span for keyword in inner if keyword.arg in within), argument.span)


def argument_of(call: nodes.Call, parameter: str, position: int | None) -> nodes.Node | None:
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


# ---- Names with a special meaning: builtins, special methods, and inaccessible names ------------
# Kernel code is evaluated in a closed world. In Python, every escape from it needs a name: a
# builtin (`open`), a special attribute (`__globals__`) or an attribute of the interpreter's own
# objects (`gi_frame`). Restricting names therefore closes it.


def words(text: str) -> list[str]:
    return text.split()


# The names that kernel code may use without an import.
BUILTINS = frozenset(
    words("""
    False None True Ellipsis NotImplemented __debug__
    abs all any ascii bin bool bytes callable chr delattr dict divmod enumerate filter float
    format frozenset getattr hasattr hash hex int isinstance issubclass iter len list map max min
    next object oct ord pow print property range repr reversed round set setattr slice sorted
    staticmethod classmethod str sum super tuple type zip
    ArithmeticError AssertionError AttributeError BaseException BufferError DeprecationWarning
    EOFError Exception FileNotFoundError FloatingPointError FutureWarning ImportError IndexError
    KeyError LookupError MemoryError ModuleNotFoundError NameError NotImplementedError OSError
    OverflowError RecursionError RuntimeError RuntimeWarning StopAsyncIteration StopIteration
    SyntaxError SystemError TimeoutError TypeError UnboundLocalError UnicodeDecodeError
    UnicodeEncodeError UnicodeError UserWarning ValueError Warning ZeroDivisionError
    """)
)

# Only in Beta 2: the memories in which tensors are allocated.
MEMORIES = ("sbuf", "psum", "hbm")

_FILES = "a kernel is compiled from its source and arguments alone, and cannot use files"
_CODE = "kernel source is compiled as it is; pass functions, or choose with `if`"
_INSIDE = "keep the values you need in variables, a dict or a class"

# Python builtins that NKI lacks, with their alternatives.
REFUSED_BUILTINS = {
    **dict.fromkeys(("open", "input"), _FILES),
    **dict.fromkeys(("eval", "exec", "compile", "__import__"), _CODE),
    **dict.fromkeys(("globals", "locals", "vars", "dir"), _INSIDE),
    "id": "compare values with `==`: addresses differ from one compilation to the next",
    "breakpoint": "use `print`: it shows compile-time values",
    "complex": "NKI has no complex numbers: keep the real and imaginary parts in two tensors",
    **dict.fromkeys(("bytearray", "memoryview"), "use a list of integers, or `bytes`"),
    **dict.fromkeys(("aiter", "anext"), "use a `for` loop"),
    **dict.fromkeys(("exit", "quit"), "use `assert` to stop the compilation"),
    **dict.fromkeys(("SystemExit", "KeyboardInterrupt"), "use `assert` to stop the compilation"),
    "GeneratorExit": "use `finally`: it runs when a generator is closed",
}

# Names that files customarily import, with the import statement.
_CUSTOMARY = {
    "nki": "import nki",
    "nl": "import nki.language as nl",
    "nisa": "import nki.isa as nisa",
    "ncc": "import nki.collectives as ncc",
    "np": "import numpy as np",
    "math": "import math",
    "partial": "from functools import partial",
    "reduce": "from functools import reduce",
    "dataclass": "from dataclasses import dataclass",
    "field": "from dataclasses import field",
    "Enum": "from enum import Enum",
    "NKIObject": "from nki.language import NKIObject",
}
# Memories, which the first examples of NKI Beta 2 use as predefined names.
_MEMORIES = frozenset({"sbuf", "psum", "hbm", "shared_hbm", "private_hbm"})


def customary(name: str) -> str:
    """Return advice on an undefined name whose import was probably forgotten, or ""."""
    if name in _MEMORIES:
        creation = f"nl.ndarray(shape, dtype=dtype, buffer=nl.{name})"
        return (
            f"write `nl.{name}`; `{creation}` is what examples of NKI Beta 2 write as `{name}.view`"
        )
    line = _CUSTOMARY.get(name)
    return f"write `{line}` at the top of the file" if line else ""


_OPERATORS = words("add sub mul truediv floordiv mod divmod pow lshift rshift and or xor matmul")
_BINARY = frozenset(f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i"))
# Special methods that a kernel's class may define and call by name.
SPECIAL_METHODS = _BINARY | frozenset(
    f"__{name}__"
    for name in words("""
        abs bool bytes call ceil class_getitem contains delattr delete delitem enter eq exit float
        floor format ge get getattr getitem gt hash index init init_subclass int invert iter
        le len length_hint lt missing ne neg new next pos post_init repr reversed round set
        set_name setattr setitem str trunc
    """)
)
# Further special attributes that kernel code may read: their values are plain text, or functions,
# classes and exceptions of the kernel itself.
_READABLE = frozenset(
    f"__{name}__"
    for name in words("""
        bases cause class context doc func members module mro name notes qualname self slots
        match_args suppress_context wrapped
    """)
)
# Special names that a class body or module may assign.
ASSIGNABLE = frozenset(
    {"__slots__", "__all__", "__name__", "__match_args__", "__doc__", "__annotations__"}
)
# Object attributes of the interpreter: frames, code, tracebacks, generators, types.
_INTERPRETER = frozenset(
    words("""
    gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await cr_origin ag_frame ag_code ag_await
    f_back f_builtins f_code f_globals f_lasti f_lineno f_locals f_trace f_trace_lines
    f_trace_opcodes f_generator tb_frame tb_next tb_lasti tb_lineno
    func_globals func_code func_closure im_func im_self im_class
    """)
)


def is_special(name: str) -> bool:
    """Whether a name has two underscores on both sides: `__name__`."""
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def is_hidden(attribute: str) -> bool:
    """Whether kernel code may not read this attribute of any object."""
    if is_special(attribute):
        return attribute not in _READABLE and attribute not in SPECIAL_METHODS
    return attribute in _INTERPRETER or attribute.startswith("co_")


def may_define(method: str) -> bool:
    return not is_special(method) or method in SPECIAL_METHODS


def instead_of(attribute: str) -> str:
    return _INSTEAD.get(attribute, "use the public methods and fields of the object")


_INSTEAD = {
    "__dict__": "name the fields you need; `dataclasses.fields` lists those of a dataclass",
    "__len__": "use `len(x)`",
    "__getattribute__": "define `__getattr__`: it is called for missing attributes",
    "__subclasses__": "list the classes yourself",
    "__import__": "write an import statement at the top of the file",
    "__del__": "nothing is freed while a kernel is compiled; remove it",
}


# ---- The syntax tree as text, one node per line, to show what the parser read -------------------


def tree_text(root: Node) -> str:
    """Return every node below its parent, indented, with its span and its plain fields."""
    lines: list[str] = []
    waiting = [(0, "", root)]
    while waiting:  # a loop, because chains of operators nest as deep as the file is long
        depth, role, node = waiting.pop()
        lines.append("  " * depth + role + _line(node))
        below = [(depth + 1, name, child) for name, child in _children(node)]
        waiting.extend(reversed(below))
    return "\n".join(lines) + "\n"


def _line(node: Node) -> str:
    span = node.span
    plain = [f"{name}={value!r}" for name, value in _plain(node)]
    position = f"@{span.line}:{span.column}-{span.end_line}:{span.end_column}"
    return " ".join([type(node).__name__, *plain, position])


def _plain(node: Node) -> Iterator[tuple[str, object]]:
    for part in fields(node):
        value = getattr(node, part.name)
        if not isinstance(value, Node | Span) and not _nodes_in(value):
            yield part.name, value


def _children(node: Node) -> Iterator[tuple[str, Node]]:
    for part in fields(node):
        value = getattr(node, part.name)
        if isinstance(value, Node):
            yield f"{part.name}: ", value
        elif isinstance(value, tuple):
            yield from ((f"{part.name}: ", item) for item in value if isinstance(item, Node))


def _nodes_in(value: object) -> bool:
    return isinstance(value, tuple) and any(isinstance(item, Node | Span) for item in value)
