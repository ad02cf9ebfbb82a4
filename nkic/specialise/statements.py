"""Statements: syntax nodes to Python's `ast`, with steps counted and device loops hooked in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nkic.base.source import Span
from nkic.specialise.assignments import Assignments
from nkic.specialise.expressions import is_flat
from nkic.specialise.scope import STORE, Frame, Refused, call, name
from nkic.syntax import names, nodes, scopes

# Conditions that are plain truth values whatever their operands are.
_PLAIN_TESTS = nodes.Compare | nodes.UnaryOp | nodes.Constant
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception"})


class Statements(Assignments):
    """Translates statements at the place that `scope` knows."""

    def block(self, body: Iterable[nodes.Statement]) -> list[ast.stmt]:
        """Several statements; never empty."""
        made = [part for node in body for part in self.statement(node)]
        return made or [ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)]

    def statement(self, node: nodes.Statement) -> list[ast.stmt]:
        """One statement, which may need several of Python's."""
        found: list[ast.stmt] = _MAKERS[type(node)](self, node)
        return found

    def _step(self, span: Span) -> ast.stmt:
        """Counts a step: at the start of every function and of every turn of a loop."""
        place = self._at(span)
        return ast.Expr(call("@tick", place), **place)

    # ---- definitions -----------------------------------------------------------------------

    def _function(self, node: nodes.FunctionDef) -> list[ast.stmt]:
        if node.is_async:
            raise self._no_async(node.name_span)
        self._check_method(node)
        place = self._at(node.span)
        decorators, arguments = self._decorators(node), self.parameters(node.args)
        with self.scope.inside(node):
            body = self._body(node)
        made = ast.FunctionDef(
            name=node.name, args=arguments, body=body, decorator_list=decorators, **place
        )
        return [_complete(made)]

    def _body(self, node: nodes.FunctionDef) -> list[ast.stmt]:
        step, first = self._step(node.name_span), node.body[0]
        if _is_text(first):
            return [*self.statement(first), step, *self.block(node.body[1:])]
        return [step, *self.block(node.body)]

    def _check_method(self, node: nodes.FunctionDef) -> None:
        if not names.may_define(node.name):
            raise Refused(
                "hidden-attribute",
                f"`{node.name}` is out of reach of kernel code",
                node.name_span,
                names.instead_of(node.name),
            )

    def _decorators(self, node: nodes.FunctionDef | nodes.ClassDef) -> list[ast.expr]:
        return [call("@decorator", self._at(one.span), self.load(one)) for one in node.decorators]

    def _class(self, node: nodes.ClassDef) -> list[ast.stmt]:
        if node.keywords:
            text = "a class with keywords in its header cannot be used in kernel code"
            raise Refused("not-in-nki", text, node.keywords[0].span, "inherit from NKIObject")
        place = self._at(node.span)
        bases: list[ast.expr] = [
            call("@base", self._at(base.span), self.load(base)) for base in node.bases
        ]
        decorators = [name("@class", self._at(node.name_span)), *self._decorators(node)]
        with self.scope.inside(node):
            body = self.block(node.body)
        mark = ast.Assign([name("__nkic__", place, STORE)], ast.Constant(True, **place), **place)
        start = 1 if _is_text(node.body[0]) else 0  # the docstring stays first
        body.insert(start, mark)
        made = ast.ClassDef(
            name=node.name, bases=bases, keywords=[], body=body, decorator_list=decorators, **place
        )
        return [_complete(made)]

    # ---- simple statements -----------------------------------------------------------------

    def _expression(self, node: nodes.Expr) -> list[ast.stmt]:
        return [ast.Expr(self.load(node.value), **self._at(node.span))]

    def _return(self, node: nodes.Return) -> list[ast.stmt]:
        place = self._at(node.span)
        value = None if node.value is None else self.load(node.value)
        return [*self._leave("return", node.span), ast.Return(value, **place)]

    def _break(self, node: nodes.Break) -> list[ast.stmt]:
        innermost = self.scope.frame.loops[-1:]
        leave = self._leave("break", node.span, innermost)
        return [*leave, ast.Break(**self._at(node.span))]

    def _leave(self, word: str, span: Span, loops: list[str] | None = None) -> list[ast.stmt]:
        """Loops on the device cannot be left; which ones those are shows when they run."""
        place = self._at(span)
        held = [one for one in (self.scope.frame.loops if loops is None else loops) if one]
        if not held:
            return []
        arguments = [ast.Constant(word, **place), *(name(one, place) for one in held)]
        return [ast.Expr(call("@leave", place, *arguments), **place)]

    def _continue(self, node: nodes.Continue) -> list[ast.stmt]:
        return [ast.Continue(**self._at(node.span))]

    def _pass(self, node: nodes.Pass) -> list[ast.stmt]:
        return [ast.Pass(**self._at(node.span))]

    def _raise(self, node: nodes.Raise) -> list[ast.stmt]:
        exc = None if node.exc is None else self.load(node.exc)
        cause = None if node.cause is None else self.load(node.cause)
        return [ast.Raise(exc, cause, **self._at(node.span))]

    def _assert(self, node: nodes.Assert) -> list[ast.stmt]:
        message = None if node.msg is None else self.load(node.msg)
        return [ast.Assert(self.load(node.test), message, **self._at(node.span))]

    def _global(self, node: nodes.Global) -> list[ast.stmt]:
        return [ast.Global(list(node.names), **self._at(node.span))]

    def _nonlocal(self, node: nodes.Nonlocal) -> list[ast.stmt]:
        return [ast.Nonlocal(list(node.names), **self._at(node.span))]

    def _type_alias(self, node: nodes.TypeAlias) -> list[ast.stmt]:
        place = self._at(node.span)
        return [ast.Assign([name(node.name.id, place, STORE)], name("@type", place), **place)]

    # ---- imports ---------------------------------------------------------------------------

    def _import(self, node: nodes.Import) -> list[ast.stmt]:
        place = self._at(node.span)
        made: list[ast.stmt] = []
        for alias in node.names:
            request = alias.name if alias.asname else alias.name.partition(".")[0]
            value = self._imported(node.span, "@module", request)
            target = name(scopes.alias_name(alias), place, STORE)
            made.append(ast.Assign([target], value, **place))
        return made

    def _import_from(self, node: nodes.ImportFrom) -> list[ast.stmt]:
        place = self._at(node.span)
        request = "." * node.level + (node.module or "")
        made: list[ast.stmt] = []
        for alias in node.names if request != "__future__" else ():
            if alias.name == "*":
                continue  # the module's own table of names knows
            value = self._imported(node.span, "@member", request, alias.name)
            target = name(scopes.alias_name(alias), place, STORE)
            made.append(ast.Assign([target], value, **place))
        return made

    def _imported(self, span: Span, function: str, *arguments: str) -> ast.expr:
        place = self._at(span)
        soft = self.scope.frame.soft_imports > 0
        values = [ast.Constant(value, **place) for value in arguments]
        return call(function, place, ast.Constant(soft, **place), *values)

    # ---- loops and branches ----------------------------------------------------------------

    def _if(self, node: nodes.If) -> list[ast.stmt]:
        test = self.load(node.test)
        orelse = self.block(node.orelse) if node.orelse else []
        return [ast.If(test, self.block(node.body), orelse, **self._at(node.test.span))]

    def _for(self, node: nodes.For) -> list[ast.stmt]:
        if node.is_async:
            raise self._no_async(node.span)
        place, header = self._at(node.span), self._at(node.iter.span)
        iterable: ast.expr = call("@for", header, self.load(node.iter))
        before: list[ast.stmt] = []
        held = self.scope.temporary() if _may_leave(node) else ""
        if held:
            before = [ast.Assign([name(held, header, STORE)], iterable, **header)]
            iterable = name(held, header)
        target, stores = self.target(node.target)
        step = self._step(node.iter.span)
        body = [step, *stores, *self._loop_body(held, node.body)]
        orelse = self.block(node.orelse) if node.orelse else []
        return [*before, ast.For(target, iterable, body, orelse, **place)]

    def _loop_body(self, held: str, body: tuple[nodes.Statement, ...]) -> list[ast.stmt]:
        loops = self.scope.frame.loops
        loops.append(held)
        made = self.block(body)
        loops.pop()
        return made

    def _while(self, node: nodes.While) -> list[ast.stmt]:
        place, header = self._at(node.span), self._at(node.test.span)
        test, before, held = self.load(node.test), list[ast.stmt](), ""
        if not isinstance(node.test, _PLAIN_TESTS):
            held = self.scope.temporary()
            empty = ast.Constant(None, **header)
            before = [ast.Assign([name(held, header, STORE)], empty, **header)]
            state = call("@while", header, name(held, header), test)
            test = ast.NamedExpr(name(held, header, STORE), state, **header)
        turn = self.scope.temporary()
        before.append(ast.Assign([name(turn, header, STORE)], call("@turns", header), **header))
        step = ast.Expr(call(turn, header), **header)
        body = [step, *self._loop_body(held, node.body)]
        orelse = self.block(node.orelse) if node.orelse else []
        return [*before, ast.While(test, body, orelse, **place)]

    def _with(self, node: nodes.With) -> list[ast.stmt]:
        if node.is_async:
            raise self._no_async(node.span)
        items, stores = [], list[ast.stmt]()
        for item in node.items:
            value = call("@with", self._at(item.span), self.load(item.context_expr))
            target = None
            if item.optional_vars is not None:
                target, more = self.target(item.optional_vars)
                stores += more
            items.append(ast.withitem(value, target))
        return [ast.With(items, [*stores, *self.block(node.body)], **self._at(node.span))]

    def _try(self, node: nodes.Try) -> list[ast.stmt]:
        if node.is_star:
            raise Refused("not-in-nki", "`except*` cannot be used in kernel code", node.span)
        body = self._try_body(node)
        handlers = [self._handler(handler) for handler in node.handlers]
        orelse = self.block(node.orelse) if node.orelse else []
        final = self.block(node.finalbody) if node.finalbody else []
        return [ast.Try(body, handlers, orelse, final, **self._at(node.span))]

    def _try_body(self, node: nodes.Try) -> list[ast.stmt]:
        soft = any(_catches_imports(handler) for handler in node.handlers)
        frame: Frame = self.scope.frame
        frame.soft_imports += soft
        body = self.block(node.body)
        frame.soft_imports -= soft
        return body

    def _handler(self, node: nodes.ExceptHandler) -> ast.ExceptHandler:
        kind = None if node.type is None else self.load(node.type)
        return ast.ExceptHandler(kind, node.name, self.block(node.body), **self._at(node.span))

    def _no_async(self, span: Span) -> Refused:
        return Refused("not-in-nki", "`async` cannot be used in kernel code", span)

    # ---- match -----------------------------------------------------------------------------

    def _match(self, node: nodes.Match) -> list[ast.stmt]:
        subject: ast.expr = call("@flat", self._at(node.subject.span), self.load(node.subject))
        cases = [
            ast.match_case(
                self._pattern(case.pattern),
                None if case.guard is None else self.load(case.guard),
                self.block(case.body),
            )
            for case in node.cases
        ]
        return [ast.Match(subject, cases, **self._at(node.span))]

    def _pattern(self, node: nodes.Pattern) -> ast.pattern:
        found: ast.pattern = _PATTERNS[type(node)](self, node)
        return found

    def _patterns(self, parts: Iterable[nodes.Pattern]) -> list[ast.pattern]:
        return [self._pattern(part) for part in parts]

    def _match_value(self, node: nodes.MatchValue) -> ast.pattern:
        value = self.load(node.value)
        if isinstance(value, ast.Call):  # a guarded attribute; patterns take dotted names only
            text = "private names cannot be used in patterns"
            raise Refused("not-in-nki", text, node.span, "compare with `if`")
        return ast.MatchValue(value, **self._at(node.span))

    def _match_singleton(self, node: nodes.MatchSingleton) -> ast.pattern:
        return ast.MatchSingleton(node.value, **self._at(node.span))

    def _match_sequence(self, node: nodes.MatchSequence) -> ast.pattern:
        return ast.MatchSequence(self._patterns(node.patterns), **self._at(node.span))

    def _match_mapping(self, node: nodes.MatchMapping) -> ast.pattern:
        for key in node.keys:
            if not is_flat(key):
                text = "a name cannot be a key in a pattern"
                raise Refused("not-in-nki", text, key.span, "compare with `if`")
        keys, patterns = self.loads(node.keys), self._patterns(node.patterns)
        return ast.MatchMapping(keys, patterns, node.rest, **self._at(node.span))

    def _match_class(self, node: nodes.MatchClass) -> ast.pattern:
        for attribute in node.kwd_attrs:
            if attribute.startswith("_") or names.is_hidden(attribute):
                raise Refused(
                    "hidden-attribute", f"`{attribute}` cannot be used in a pattern", node.span
                )
        return ast.MatchClass(
            self._class_pattern(node.cls),
            self._patterns(node.patterns),
            list(node.kwd_attrs),
            self._patterns(node.kwd_patterns),
            **self._at(node.span),
        )

    def _class_pattern(self, node: nodes.Expression) -> ast.expr:
        found = self._class_argument(node)
        if isinstance(found, ast.Call):
            raise Refused("not-in-nki", "private names cannot be used in patterns", node.span)
        return found

    def _match_star(self, node: nodes.MatchStar) -> ast.pattern:
        return ast.MatchStar(node.name, **self._at(node.span))

    def _match_as(self, node: nodes.MatchAs) -> ast.pattern:
        inner = None if node.pattern is None else self._pattern(node.pattern)
        return ast.MatchAs(inner, node.name, **self._at(node.span))

    def _match_or(self, node: nodes.MatchOr) -> ast.pattern:
        return ast.MatchOr(self._patterns(node.patterns), **self._at(node.span))


def _complete(node: ast.FunctionDef | ast.ClassDef) -> ast.stmt:
    """Python 3.12 added a field that must not be missing."""
    if "type_params" in node._fields:
        node.type_params = []  # type: ignore[union-attr,unused-ignore]
    return node


def _is_text(node: nodes.Statement) -> bool:
    """A docstring, where it stands first."""
    if not isinstance(node, nodes.Expr) or not isinstance(node.value, nodes.Constant):
        return False
    return isinstance(node.value.value, str)


def _catches_imports(handler: nodes.ExceptHandler) -> bool:
    caught = [handler.type]
    if isinstance(handler.type, nodes.Tuple):
        caught = list(handler.type.elts)
    found = {node.id for node in caught if isinstance(node, nodes.Name)}
    return handler.type is None or bool(found & _IMPORT_ERRORS)


def _may_leave(loop: nodes.For) -> bool:
    """The body holds a `return`, or a `break` of this very loop."""
    return any(isinstance(node, nodes.Return) for node in scopes.own(loop.body)) or any(
        True for part in loop.body for _ in _breaks(part)
    )


def _breaks(node: nodes.Node) -> Iterator[nodes.Break]:
    if isinstance(node, nodes.Break):
        yield node
    elif isinstance(node, nodes.For | nodes.While):
        for part in node.orelse:
            yield from _breaks(part)
    elif isinstance(node, nodes.If | nodes.With | nodes.Try | nodes.Match):
        for part in _inner(node):
            yield from _breaks(part)


def _inner(node: nodes.If | nodes.With | nodes.Try | nodes.Match) -> Iterator[nodes.Statement]:
    if isinstance(node, nodes.Match):
        yield from (part for case in node.cases for part in case.body)
        return
    yield from node.body
    if isinstance(node, nodes.If | nodes.Try):
        yield from node.orelse
    if isinstance(node, nodes.Try):
        yield from (part for handler in node.handlers for part in handler.body)
        yield from node.finalbody


_MAKERS: dict[type[nodes.Node], Callable[[Statements, Any], list[ast.stmt]]] = {
    nodes.FunctionDef: Statements._function,
    nodes.ClassDef: Statements._class,
    nodes.Expr: Statements._expression,
    nodes.Assign: Statements._assign,
    nodes.AugAssign: Statements._augmented,
    nodes.AnnAssign: Statements._annotated,
    nodes.TypeAlias: Statements._type_alias,
    nodes.Return: Statements._return,
    nodes.Delete: Statements._delete,
    nodes.Raise: Statements._raise,
    nodes.Assert: Statements._assert,
    nodes.Import: Statements._import,
    nodes.ImportFrom: Statements._import_from,
    nodes.Global: Statements._global,
    nodes.Nonlocal: Statements._nonlocal,
    nodes.Pass: Statements._pass,
    nodes.Break: Statements._break,
    nodes.Continue: Statements._continue,
    nodes.If: Statements._if,
    nodes.While: Statements._while,
    nodes.For: Statements._for,
    nodes.With: Statements._with,
    nodes.Try: Statements._try,
    nodes.Match: Statements._match,
}
_PATTERNS: dict[type[nodes.Node], Callable[[Statements, Any], ast.pattern]] = {
    nodes.MatchValue: Statements._match_value,
    nodes.MatchSingleton: Statements._match_singleton,
    nodes.MatchSequence: Statements._match_sequence,
    nodes.MatchMapping: Statements._match_mapping,
    nodes.MatchClass: Statements._match_class,
    nodes.MatchStar: Statements._match_star,
    nodes.MatchAs: Statements._match_as,
    nodes.MatchOr: Statements._match_or,
}
