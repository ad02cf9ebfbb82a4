"""The kernel subset: the Python constructs that kernel code may use, by version of NKI.

The table is data. First come the constructs that no version supports (`NEVER`), then those that the
first compiled version lacked (`BETA2`). Sources: NKI Language Guide; release notes and migration
guides 0.2.0 to 0.6.0. The guides do not list every construct: versions from 0.3 on run the kernel's
own Python, so constructs that the guides do not mention are accepted if their meaning is clear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from nkic.base.diagnostics import Diagnostic, Fix, Level, Reporter, make
from nkic.base.profiles import Profile
from nkic.base.source import Span
from nkic.source import nodes, scopes
from nkic.source.bindings import Binding, SourceModule

# ---- Imports of `neuronxcc.nki`, the namespace of NKI 0.1, reported where they occur ------------
# Source: migration guides 0.1 to 0.2 and 0.3 to 0.4: a warning until 0.3, an error since 0.4.

ROOT = "neuronxcc"
PREFIX = f"{ROOT}.nki"
_REUSED = {"nki", "nki.compiler"}  # today's `nki.compiler` has other contents


def check_import(
    module: SourceModule,
    binding: Binding,
    profile: Profile,
    provided: Collection[str],
    report: Reporter,
) -> None:
    """Report the import that binds a name if it imports from the former namespace.

    `provided` holds the names of the modules that exist today.
    """
    target = binding.target
    if target is None:
        return  # one of several imports that bind the name, such as a fallback
    name = f"{target.request}.{target.member}" if target.member else target.request
    if profile is Profile.BETA1:
        is_constants = f"{name}.".startswith("nki.language.constants.")
        if f"{name}.".startswith("nki.") and not is_constants and not module.trusted:
            _report_too_new(name, binding, report)
    elif f"{name}.".startswith(f"{PREFIX}."):
        current = name.removeprefix(f"{ROOT}.")
        exists = {current, current.rpartition(".")[0]} & {*provided} - _REUSED or current == "nki"
        help = f"import `{current}`" if exists else "leave it out: `nki` has no such module"
        fixes = _fix(module, binding.span) if exists else ()
        report.add(_former(name, binding.span, profile, help, fixes))


def _former(name: str, span: Span, profile: Profile, help: str, fixes: Sequence[Fix]) -> Diagnostic:
    if profile >= Profile.NKI_0_4:
        text = f"NKI {profile.label} has no `{name}`: all of `{PREFIX}` was removed in NKI 0.4"
        return make("removed-name", text, span, help=help, fixes=fixes)
    text = f"`{name}` is deprecated since NKI beta2, as all of `{PREFIX}`"
    return make("deprecated", text, span, help=help, fixes=fixes, level=Level.WARNING)


def _report_too_new(name: str, binding: Binding, report: Reporter) -> None:
    text = f"NKI beta1 has no `{name}`: `nki` was added in NKI beta2"
    help = f"import `{ROOT}.{name}`, or compile with the version that the kernel is written for"
    report.error("needs-profile", text, binding.span, help=help)


def _fix(module: SourceModule, span: Span) -> tuple[Fix, ...]:
    """Return a fix that drops the removed prefix; none if the import spans several lines."""
    text = module.source.text_of(span)
    fixed = text.replace(f"from {ROOT} import nki", "import nki").replace(PREFIX, "nki")
    fixed = fixed.removesuffix(" as nki") if fixed == "import nki as nki" else fixed
    if span.line != span.end_line or fixed == text or ROOT in fixed:
        return ()
    return (Fix(span, fixed, "import it by its current name", sure=True),)


NEVER = frozenset(Profile)
# Beta 1 and 0.7 trace: they support all of Python.
UNTIL_0_6 = frozenset(p for p in Profile if Profile.BETA1 < p <= Profile.NKI_0_6)
BETA2 = frozenset({Profile.BETA2})
NKI_0_3 = frozenset({Profile.NKI_0_3})


class SubsetRule(NamedTuple):
    """A construct, the versions that lack it, and its alternative."""

    words: str
    refused: frozenset[Profile]
    advice: str


class Violation(NamedTuple):
    """An occurrence of a construct that the profile in use lacks."""

    rule: SubsetRule
    span: Span


_IDENTITY = ", or compile with `--nki 0.4`: NKI 0.3 does not compare identities"
RULES = {
    "async": SubsetRule(
        "`async`", NEVER, "write plain functions and loops: the compiler schedules"
    ),
    "await": SubsetRule("`await`", NEVER, "call the function directly: the compiler schedules"),
    "yield": SubsetRule(
        "`yield`", UNTIL_0_6, "return a list, or pass in a function and call it for each value"
    ),
    "global": SubsetRule(
        "`global`",
        UNTIL_0_6,
        "pass the value in and return it: a kernel may depend on its arguments only",
    ),
    "try": SubsetRule(
        "`try`", UNTIL_0_6, "test the condition with `if` before the step that may fail"
    ),
    "metaclass": SubsetRule(
        "a class with keywords in its header", UNTIL_0_6, "inherit from `nl.NKIObject` alone"
    ),
    "type-alias": SubsetRule("a `type` statement", UNTIL_0_6, "move it out of the function"),
    "raise": SubsetRule("`raise`", BETA2, "use `assert condition, message`"),
    "nested-def": SubsetRule(
        "a function inside a function", BETA2, "move it to the top of the file"
    ),
    "nested-class": SubsetRule(
        "a class inside a function", BETA2, "move it to the top of the file"
    ),
    "lambda": SubsetRule(
        "`lambda`", BETA2, "define the function with `def` at the top of the file"
    ),
    "comprehension": SubsetRule("a comprehension", BETA2, "use a `for` loop with `append`"),
    "walrus": SubsetRule("`:=`", BETA2, "assign on a line of its own"),
    "set": SubsetRule("a set", BETA2, "use a list or a dict"),
    "match": SubsetRule("`match`", BETA2, "use `if` and `elif`"),
    "del": SubsetRule("`del`", BETA2, "leave it out, or use `pop`"),
    "nonlocal": SubsetRule("`nonlocal`", BETA2, "return the value, or keep it in a class"),
    "loop-else": SubsetRule("`else` on a loop", BETA2, "set a flag before `break` and test it"),
    "plain-class": SubsetRule("a class without base", BETA2, "inherit from `nl.NKIObject`"),
    "import": SubsetRule("an import inside a function", BETA2, "move it to the top of the file"),
    "star-argument": SubsetRule("`*` or `**` in a call", BETA2, "write the arguments out"),
    "star-parameter": SubsetRule("`*args` or `**kwargs`", BETA2, "name the parameters"),
    "star-value": SubsetRule("`*` in a list or tuple", BETA2, "join the lists with `+`"),
    "format-spec": SubsetRule("a format specification", BETA2, "print the value as it is"),
    "dict-key": SubsetRule("a dict key that is not a string", BETA2, "use string keys"),
    "matmul": SubsetRule("the operator `@`", BETA2, "call `nisa.nc_matmul`"),
    "property": SubsetRule("a property", BETA2, "make it a method and call it"),
    "is": SubsetRule("`is`", NKI_0_3, f"use `==`{_IDENTITY}"),
    "is-not": SubsetRule("`is not`", NKI_0_3, f"use `!=`{_IDENTITY}"),
}
SUB_KERNEL = SubsetRule(
    "a decorated kernel inside another kernel",
    BETA2,
    "remove the decorator, and write `nki.jit(kernel)` where host code calls it",
)
KEYWORD_ONLY = SubsetRule(
    "a keyword-only parameter of a kernel", NKI_0_3, "remove the `*` from the signature"
)

LIST_DEFAULT = SubsetRule("a list as an argument of a kernel", NKI_0_3, "write a tuple, `(1, 2)`")

_BY_NODE: dict[type[nodes.Node], str] = {
    nodes.Await: "await",
    nodes.Yield: "yield",
    nodes.YieldFrom: "yield",
    nodes.Global: "global",
    nodes.Try: "try",
    nodes.Raise: "raise",
    nodes.Lambda: "lambda",
    nodes.ListComp: "comprehension",
    nodes.SetComp: "comprehension",
    nodes.DictComp: "comprehension",
    nodes.GeneratorExp: "comprehension",
    nodes.NamedExpr: "walrus",
    nodes.Set: "set",
    nodes.Match: "match",
    nodes.Delete: "del",
    nodes.Nonlocal: "nonlocal",
    nodes.Import: "import",
    nodes.ImportFrom: "import",
    nodes.TypeAlias: "type-alias",
}


@lru_cache(maxsize=2048)
def violations(
    definition: nodes.Node, profile: Profile, excluded: frozenset[scopes.Scope] = frozenset()
) -> tuple[Violation, ...]:
    """Return the constructs in `definition` that `profile` lacks.

    The insides of the scopes in `excluded` are left out.
    """
    constructs = _constructs(definition, excluded)
    wrong = ((RULES[key], node) for node, key in constructs if profile in RULES[key].refused)
    return tuple([Violation(rule, place(node)) for rule, node in wrong])


def of_kernel(kernel: nodes.FunctionDef, profile: Profile) -> Iterator[Violation]:
    """Yield the constructs in the signature of a kernel that `profile` lacks."""
    args = kernel.args
    if profile in KEYWORD_ONLY.refused:
        yield from (Violation(KEYWORD_ONLY, arg.span) for arg in args.kwonlyargs)
    if profile in LIST_DEFAULT.refused:
        lists = (value for value in args.defaults if isinstance(value, nodes.List))
        yield from (Violation(LIST_DEFAULT, value.span) for value in lists)


def place(node: nodes.Node) -> Span:
    """Return the span to report: for a construct of several lines, its keyword or name."""
    if isinstance(node, nodes.FunctionDef | nodes.ClassDef):
        return node.name_span
    if not isinstance(node, _BLOCKS):
        return node.span
    path, line, column, *_ = node.span
    return Span(path, line, column, line, column + len(type(node).__name__))


# The keywords of these statements are as long as the names of their classes.
_BLOCKS = nodes.Try | nodes.With | nodes.Match | nodes.For | nodes.While


def _constructs(
    definition: nodes.Node, excluded: frozenset[scopes.Scope]
) -> Iterator[tuple[nodes.Node, str]]:
    """Yield every node of a definition that has a rule, with its key; annotations have none."""
    waiting: list[tuple[Iterator[nodes.Node], bool]] = [(iter([definition]), False)]
    while waiting:
        roots, in_function = waiting.pop()
        for node in scopes.nodes_in_scope(roots):
            if type(node) in _CHECKED:
                yield from ((node, key) for key in _keys(node, in_function))
            if scopes.is_scope(node) and node not in excluded:
                yield from _in_signature(node)
                waiting.append((scopes.inside(node), isinstance(node, scopes.Function)))


def _in_signature(scope: scopes.Scope) -> Iterator[tuple[nodes.Node, str]]:
    if isinstance(scope, scopes.Function) and (scope.args.vararg or scope.args.kwarg):
        yield scope.args, "star-parameter"


def _keys(node: nodes.Node, in_function: bool) -> Iterator[str]:
    yield from [_BY_NODE[type(node)]] if type(node) in _BY_NODE else []
    yield from (key for key, test in _TESTS_OF.get(type(node), ()) if test(node))
    if in_function and isinstance(node, nodes.FunctionDef | nodes.ClassDef):
        yield "nested-def" if isinstance(node, nodes.FunctionDef) else "nested-class"


def _has_star(parts: Sequence[nodes.Expression]) -> bool:
    return any(isinstance(part, nodes.Starred) for part in parts)


def _has_other_key(node: nodes.Dict) -> bool:
    literals = [key.value for key in node.keys if isinstance(key, nodes.Constant)]
    return not all(isinstance(value, str) for value in literals)


def _unpacks(node: nodes.Call) -> bool:
    return _has_star(node.args) or any(keyword.arg is None for keyword in node.keywords)


def _is_property(decorator: nodes.Expression) -> bool:
    return isinstance(decorator, nodes.Name) and decorator.id == "property"


# The keys of constructs that only some nodes of a type are, with the test.
_TESTS: tuple[tuple[str, tuple[type[nodes.Node], ...], Callable[[Any], bool]], ...] = (
    ("loop-else", (nodes.For, nodes.While), lambda node: node.orelse),
    ("async", (nodes.FunctionDef, nodes.For, nodes.With), lambda node: node.is_async),
    ("property", (nodes.FunctionDef,), lambda node: any(map(_is_property, node.decorators))),
    ("metaclass", (nodes.ClassDef,), lambda node: node.keywords),
    ("plain-class", (nodes.ClassDef,), lambda node: not node.bases),
    ("star-argument", (nodes.Call,), _unpacks),
    ("star-value", (nodes.List, nodes.Tuple), lambda node: _has_star(node.elts)),
    ("dict-key", (nodes.Dict,), _has_other_key),
    ("format-spec", (nodes.FormattedValue,), lambda node: node.format_spec is not None),
    ("matmul", (nodes.BinOp, nodes.AugAssign), lambda node: node.op == "@"),
    ("is", (nodes.Compare,), lambda node: "is" in node.ops),
    ("is-not", (nodes.Compare,), lambda node: "is not" in node.ops),
)
_TESTS_OF = {
    kind: [(key, test) for key, kinds, test in _TESTS if kind in kinds]
    for _, kinds, _ in _TESTS
    for kind in kinds
}
_CHECKED = _BY_NODE.keys() | _TESTS_OF.keys()
