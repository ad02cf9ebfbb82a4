"""Parse a file's text into its syntax tree, by `grammar/nki.lark`.

Any valid Python file through 3.12 is accepted; any other file gets one located error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from nkic.base.diagnostics import CompileFailed, refusal
from nkic.base.source import SourceFile
from nkic.source import actions
from nkic.source import nodes as n
from nkic.source.lexer import lex
from nkic.source.nodes import Module, children
from nkic.source.parser import Unexpected

# ---- Rules about the position of statements that a grammar cannot express -----------------------
# `return` and `yield` belong in a function, `await` in an async one, `break` and `continue` in a
# loop. The rules for `global`, `nonlocal` and `import *` are not here because they depend on
# names.


class Context(NamedTuple):
    """The surroundings of a node."""

    function: str = ""  # "def", "async def", "lambda", or "" outside of functions
    in_loop: bool = False
    in_comprehension: bool = False


Found: TypeAlias = tuple[n.Node, Context]
_BODIES: dict[type[n.Node], tuple[str, ...]] = {
    n.If: ("body", "orelse"),
    n.With: ("body",),
    n.Try: ("body", "handlers", "orelse", "finalbody"),
    n.ExceptHandler: ("body",),
    n.Match: ("cases",),
    n.MatchCase: ("body",),
    n.For: ("orelse",),  # the body is in the loop, `orelse` is not
    n.While: ("orelse",),
}
Comprehension: TypeAlias = n.ListComp | n.SetComp | n.DictComp | n.GeneratorExp
_COMPREHENSIONS = (n.ListComp, n.SetComp, n.DictComp, n.GeneratorExp)
_SUSPENDS = frozenset({"yield", "await", "async"})


def check_context(module: n.Module, words: Iterable[str]) -> None:
    """Raise at the first statement or expression in an invalid position.

    `words` holds the file's keywords: without `yield`, `await` and `async` no expression can be
    invalid, and only statements are checked.
    """
    below = _everything_below if _SUSPENDS.intersection(words) else _statements_below
    waiting: list[Found] = [(statement, Context()) for statement in reversed(module.body)]
    while waiting:
        node, context = waiting.pop()
        if error := _error_at(node, context):
            raise error
        waiting.extend(reversed(list(below(node, context))))


# ---- children of a node and their context --------------------------------------------------


def _statements_below(node: n.Node, context: Context) -> Iterator[Found]:
    if isinstance(node, n.FunctionDef | n.ClassDef):
        context = _inner(node)
        yield from ((statement, context) for statement in node.body)
        return
    if isinstance(node, n.For | n.While):
        in_loop = context._replace(in_loop=True)
        yield from ((statement, in_loop) for statement in node.body)
    for name in _BODIES.get(type(node), ()):
        yield from ((statement, context) for statement in getattr(node, name))


def _inner(node: n.FunctionDef | n.ClassDef) -> Context:
    if isinstance(node, n.ClassDef):
        return Context()
    return Context("async def" if node.is_async else "def")


def _everything_below(node: n.Node, context: Context) -> Iterator[Found]:
    if isinstance(node, _COMPREHENSIONS):
        function = "async def" if isinstance(node, n.GeneratorExp) else context.function
        inner = Context(function, in_comprehension=True)  # a generator that awaits is async
        elements = (node.key, node.value) if isinstance(node, n.DictComp) else (node.elt,)
        # All but the first iterable are in a function of their own.
        yield from ((element, inner) for element in elements)
        for clause in node.generators:
            yield from ((part, inner) for part in (clause.target, *clause.ifs))
            yield clause.iter, context if clause is node.generators[0] else inner
        return
    below = list(_statements_below(node, context))
    statements = {statement for statement, _ in below}
    for child in children(node):
        if child not in statements:
            in_lambda = isinstance(node, n.Lambda) and child is node.body
            yield child, Context("lambda") if in_lambda else context
    yield from below


# ---- complaints ----------------------------------------------------------------------------


def _error_at(node: n.Node, context: Context) -> CompileFailed | None:
    if isinstance(node, n.Break | n.Continue):
        return None if context.in_loop else _outside_loop(node)
    if isinstance(node, n.Return):
        return None if context.function else _outside_function("return", node)
    if isinstance(node, n.Yield | n.YieldFrom):
        return _yield(node, context)
    is_async = isinstance(node, n.Await) or (
        isinstance(node, n.For | n.With | n.ListComp | n.SetComp | n.DictComp) and _awaits(node)
    )
    if is_async and context.function != "async def":
        word = "await" if isinstance(node, n.Await) else "async"
        location = "in a function that is not async" if context.function else "not in a function"
        message = f"this `{word}` is {location}"
        return refusal("outside-function", message, node.span, help="write `async def` around it")
    return None


def _awaits(node: n.For | n.With | n.ListComp | n.SetComp | n.DictComp) -> bool:
    if isinstance(node, n.For | n.With):
        return node.is_async
    return any(clause.is_async for clause in node.generators)


def _yield(node: n.Yield | n.YieldFrom, context: Context) -> CompileFailed | None:
    if context.in_comprehension:
        message = "`yield` cannot be used in a comprehension"
        return refusal("outside-function", message, node.span, help="write a loop instead")
    if not context.function:
        return _outside_function("yield", node)
    if isinstance(node, n.YieldFrom) and context.function == "async def":
        message = "`yield from` cannot be used in an async function"
        return refusal("outside-function", message, node.span, help="loop with `async for`")
    return None


def _outside_loop(node: n.Break | n.Continue) -> CompileFailed:
    word = "break" if isinstance(node, n.Break) else "continue"
    message = f"`{word}` is not in a loop"
    help = "indent it into the `for` or `while` loop that it belongs to"
    return refusal("outside-loop", message, node.span, help=help)


def _outside_function(word: str, node: n.Node) -> CompileFailed:
    message = f"`{word}` is not in a function"
    return refusal("outside-function", message, node.span, help="indent it into a `def`")


@lru_cache(maxsize=256)
def parse(source: SourceFile) -> Module:
    """Return the syntax tree of `source`.

    Raises CompileFailed with one located error if it is not Python. Trees are memoised by path and
    text for the most recent files.
    """
    lexed = lex(source)
    try:
        module: Module = actions.parser().parse(lexed.tokens, source.path)
    except Unexpected as error:
        # Imported here because most files have no error.
        from nkic.source.errors import explain

        raise explain(error, lexed, source.path) from None
    check_context(module, {token.text for token in lexed.tokens})
    return module
