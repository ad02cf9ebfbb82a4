"""Migrate one file: parse it, and apply the rules of the table with the facts of its evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import libcst as cst

from nkic.base.diagnostics import Diagnostic, Label, Level, make
from nkic.base.profiles import Profile
from nkic.base.source import NOWHERE, SourceFile, Span
from nkic.machine.operands import Row
from nkic.migrate import calls, rules
from nkic.migrate.beta1.indices import ARANGE, Indices
from nkic.migrate.beta1.writer import Writer as Beta1Writer
from nkic.migrate.facts import Facts, facts_of, merged, with_others
from nkic.migrate.sheet import Sheet, read_in, scope_of, target_names, walk
from nkic.source.bind import Load
from nkic.source.subset import PREFIX
from nkic.specialise.inline import with_version
from nkic.specialise.request import Request

# ---- Map places in a rewritten text back to the original text -----------------------------------


def moved_back(diagnostics: Sequence[Diagnostic], old: str, new: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics about `new` with the corresponding lines of `old`."""
    if not diagnostics or old == new:
        yield from diagnostics
        return
    lines = _lines(old.splitlines(), new.splitlines())
    for diagnostic in diagnostics:
        if diagnostic.primary is None:
            yield diagnostic
            continue
        span, text = diagnostic.primary.span, diagnostic.primary.text
        line = lines.get(span.line, span.line)
        moved = span._replace(line=line, end_line=line + span.end_line - span.line)
        yield replace(diagnostic, primary=Label(moved, text))


def _lines(old: list[str], new: list[str]) -> dict[int, int]:
    old_lines: dict[int, int] = {}
    for _, start, end, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        for line in range(first, last):
            old_lines[line + 1] = min(start + line - first, max(end - 1, start)) + 1
    return old_lines


# ---- The other kernels of a file that can be evaluated for the same arguments -------------------
# A tutorial's file holds several versions of a kernel with the same parameters: what a command
# line says of the arguments applies to all of them.


def siblings(source: SourceFile, request: Request) -> Iterator[Request]:
    """Yield requests for the other decorated functions at the top of the file.

    All their parameters without defaults must be among the request's.
    """
    try:
        tree = cst.parse_module(source.text)
    except cst.ParserSyntaxError:
        return  # reported when the file is parsed for the rules
    arguments = {**request.args, **request.like, **request.consts}
    for statement in tree.body:
        if not isinstance(statement, cst.FunctionDef) or not statement.decorators:
            continue
        if statement.name.value == request.kernel:
            continue
        names = {p.name.value for p in walk(statement.params) if isinstance(p, cst.Param)}
        if names and _needed(statement) <= arguments.keys():
            yield _cut(request, statement.name.value, names)


def _needed(function: cst.FunctionDef) -> set[str]:
    params = (node for node in walk(function.params) if isinstance(node, cst.Param))
    return {param.name.value for param in params if param.default is None and not param.star}


def _cut(request: Request, kernel: str, names: set[str]) -> Request:
    args = {name: kind for name, kind in request.args.items() if name in names}
    consts = {name: value for name, value in request.consts.items() if name in names}
    return replace(request, kernel=kernel, args=args, consts=consts)


# ---- The NKI version of a file, and the facts of evaluating it as that version ------------------


class FileVersion(NamedTuple):
    """The version of a file, None if nothing states it, and that of its evaluation."""

    start: Profile | None
    profile: Profile
    facts: Facts


def version_of(
    source: SourceFile, request: Request, load: Load, stated: Profile | None, target: Profile
) -> FileVersion:
    """Return the version stated, or of the imports, or the latest that evaluates without error."""
    if stated is None and PREFIX in source.text:
        stated = Profile.BETA1
    if stated is not None:
        request = replace(request, profile=stated)
        facts = facts_of(source, request, load)
        return FileVersion(stated, stated, with_siblings(facts, source, request, load))
    tried: list[FileVersion] = []
    for profile in (p for p in reversed(Profile) if Profile.BETA2 <= p <= target):
        facts = facts_of(source, replace(request, profile=profile), load)
        tried.append(FileVersion(None, profile, facts))
        if not facts.errors:
            break
    best = min(tried, key=lambda attempt: (attempt.facts.errors, -attempt.profile))
    request = replace(request, profile=best.profile)
    return best._replace(facts=with_siblings(best.facts, source, request, load))


def with_siblings(facts: Facts, source: SourceFile, request: Request, load: Load) -> Facts:
    """Add the facts of other kernels with the same arguments and, for Beta 1, of other shapes."""
    is_old = request.profile is Profile.BETA1
    if is_old:
        facts = with_others(facts, source, request, load)
    for sibling in siblings(source, request):
        sibling_facts = facts_of(source, sibling, load)
        if sibling_facts.is_evaluated and not sibling_facts.errors:
            sibling_facts = (
                with_others(sibling_facts, source, sibling, load) if is_old else sibling_facts
            )
            facts = merged(facts, sibling_facts)
    return facts


# ---- The rules of a migration, by the version in which the new form was introduced --------------
# A rule is tried on every node of its kinds, innermost first. Source: the sections of NKI's
# migration guide (SDK documentation, nki/migration) up to that version. What a rule must know of
# single names comes from the tables of versions (nkic/language/versions.py) and of instructions.

BETA2, NKI_0_3, NKI_0_6 = Profile.BETA2, Profile.NKI_0_3, Profile.NKI_0_6


class Rule(NamedTuple):
    """One rule: its title, the version since which it applies, its nodes, its function."""

    title: str
    since: Profile
    node: type[cst.CSTNode]
    write: Callable[[Sheet, Any, Any], Any]


def _of_row(write: Callable[[Sheet, Row, Any, Any], Any]) -> Callable[[Sheet, Any, Any], Any]:
    """Return a rule about calls of instructions, of which it also gets the row."""

    def written(sheet: Sheet, old: cst.Call, new: cst.Call) -> Any:
        row = calls.row_of(sheet.name_of(old.func))
        return write(sheet, row, old, new) if row is not None else None

    return written


_NAMES = "a name that was replaced"
_IMPORTS = "an import of neuronxcc"
RULES = (
    Rule(_IMPORTS, BETA2, cst.Import, rules.move_import),
    Rule(_IMPORTS, BETA2, cst.ImportFrom, rules.move_import_from),
    Rule(_IMPORTS, BETA2, cst.Attribute, rules.move_name),
    Rule("a decorator", BETA2, cst.Attribute, rules.decorator_by_name),
    Rule("a decorator", BETA2, cst.Decorator, rules.decorator),
    Rule("an operator by another name", BETA2, cst.Call, _of_row(calls.operators)),
    Rule(rules.PASSED, BETA2, cst.Call, rules.passed),
    Rule(rules.PASSED, BETA2, cst.FunctionDef, rules.declared),
    Rule("a hint", BETA2, cst.Call, rules.hints),
    Rule("a constant's element type", BETA2, cst.Call, calls.converted),
    Rule("a word by another name", BETA2, cst.Call, _of_row(calls.words)),
    Rule("what was not said", BETA2, cst.Call, calls.defaults),
    Rule("an option of nki.jit", NKI_0_3, cst.Call, rules.jit_options),
    Rule("a parameter that is gone", BETA2, cst.Call, _of_row(rules.former_parameters)),
    Rule("a number for an enumeration", NKI_0_3, cst.Call, _of_row(calls.enumerations)),
    Rule("a buffer by name", NKI_0_3, cst.Call, calls.buffer_names),
    Rule("an output in hbm", NKI_0_3, cst.Call, calls.shared_outputs),
    Rule("a memset of integers", NKI_0_3, cst.Call, _of_row(calls.whole_fill)),
    Rule("the order of arguments", NKI_0_3, cst.Call, _of_row(calls.former_order)),
    Rule("an axis with another meaning", NKI_0_3, cst.Call, _of_row(calls.reduced_axis)),
    Rule(_NAMES, BETA2, cst.Attribute, rules.rename_attribute),
    Rule(_NAMES, BETA2, cst.Name, rules.rename_name),
    Rule(_NAMES, BETA2, cst.ImportFrom, rules.drop_import),
    Rule("a loop over nl.dynamic_range", NKI_0_6, cst.For, calls.counted),
    Rule("a while loop over a register", NKI_0_6, cst.While, calls.conditional),
)


# ---- Remove index expressions and masks that are no longer used ---------------------------------

PURE = (ARANGE, "nki.language.program_id", "nki.language.num_programs")


def without_unused(source: SourceFile, like: Sheet) -> str:
    """Return the text without them, and without those that only they used."""
    sheet = Sheet(source, Facts(), like.start, like.target)
    indices = Indices(sheet)
    candidates = [
        candidate
        for candidate in walk(sheet.tree)
        if isinstance(candidate, cst.Assign) and _is_index(indices, candidate)
    ]
    removed = {id(assign) for assign in candidates}
    while read := {id(c) for c in candidates if id(c) in removed and _is_read(sheet, c, removed)}:
        removed -= read
    module = sheet.tree.visit(_Remover(removed))
    assert isinstance(module, cst.Module)
    return module.code


class _Remover(cst.CSTTransformer):
    """Removes assignments that nothing reads, but keeps comments, except those about indices."""

    def __init__(self, removed: set[int]) -> None:
        super().__init__()
        self.gone = removed
        self.before: dict[int, list[cst.EmptyLine]] = {}
        self.comments: list[cst.EmptyLine] = []  # above removed statements, for the next

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.For):  # comments stay before the loop, not in it
            self.before[id(node)], self.comments = self.comments, []
        return True

    def on_leave(self, old: Any, new: Any) -> Any:
        match old:
            case cst.Assign() if id(old) in self.gone:
                return cst.RemoveFromParent()
            case cst.SimpleStatementLine() if not new.body:
                text = " ".join(line.comment.value for line in old.leading_lines if line.comment)
                if text and not _OF_INDICES.search(text):
                    self.comments += old.leading_lines
                return cst.RemoveFromParent()
            case cst.SimpleStatementLine():
                lines, self.comments = [*self.comments, *new.leading_lines], []
                return new.with_changes(leading_lines=lines)
            case cst.For():
                lines = [*self.before.pop(id(old)), *new.leading_lines]
                return new.with_changes(leading_lines=lines)
            case cst.IndentedBlock():  # those after its last statement
                lines, self.comments = [*self.comments, *new.footer], []
                return new.with_changes(footer=lines)
        return new


_OF_INDICES = re.compile(r"(?i)\bind(?:ex|exing|ices)\b|\barange\b|\bmgrid\b|\bmask")


def _is_read(sheet: Sheet, node: cst.Assign, removed: set[int]) -> bool:
    """Whether other statements of its function read a name that the assignment sets."""
    scope = scope_of(sheet, node)
    names = {name.value for target in node.targets for name in target_names(target.target)}
    return scope is None or not names or bool(names & read_in(scope, removed))


def _is_index(indices: Indices, node: cst.Assign) -> bool:
    """Whether the value is made of indices, and of calls without side effects."""
    sheet = indices.sheet
    functions = [inner.func for inner in walk(node.value) if isinstance(inner, cst.Call)]
    pure = all(
        sheet.name_of(function) in PURE
        or any(sheet.is_builtin(function, name) for name in ("min", "max", "len"))
        for function in functions
    )
    return pure and indices.has_index(node.value)


# --------------------------------------------------------------------------------------------------

_BY_NODE = {kind: [r for r in RULES if r.node is kind] for kind in {r.node for r in RULES}}


class Migrated(NamedTuple):
    """The new text, how often each rule was applied, and what was left unchanged."""

    text: str
    done: Mapping[str, int]
    left: tuple[Diagnostic, ...]


def migrate(source: SourceFile, facts: Facts, start: Profile | None, target: Profile) -> Migrated:
    """Rewrite `source`, which must parse, for `target`.

    `start` is its version, None if unknown: then every rule applies whose old form is valid in no
    later version.
    """
    left: list[Diagnostic] = []
    skipped: list[Span] = []  # functions that are reported as a whole
    done: Counter[str] = Counter()
    text = source.text
    if start is Profile.BETA1:
        sheet = Sheet(source, facts, start, target)
        writer = Beta1Writer(sheet)
        module = writer.pending.restored(sheet.tree.visit(writer), sheet)
        skipped = [*writer.skipped.values()]
        text = without_unused(SourceFile(source.path, _with_imports(module, sheet).code), sheet)
        for at in sorted(facts.spills):
            reason = "SBUF has no room for all tiles of this kernel: Beta 1 spills some to HBM by"
            help = "compile the new source with --spill, or use smaller blocks"
            place, level = Span(source.path, *at), Level.WARNING
            left.append(make("not-migrated", f"{reason} itself", place, help=help, level=level))
        left = [*sheet.left, *left]
        done, facts = sheet.done, Facts()
    sheet = Sheet(SourceFile(source.path, text), facts, start, target)
    module = sheet.tree.visit(_Writer(sheet))
    later = moved_back(sheet.left, source.text, text)
    left += [d for d in later if not any(s.line <= _place(d).line <= s.end_line for s in skipped)]
    new = with_version(_with_imports(module, sheet).code, target)
    return Migrated(new, done + sheet.done, tuple(sorted(left, key=_place)))


def _place(diagnostic: Diagnostic) -> Span:
    return diagnostic.primary.span if diagnostic.primary is not None else NOWHERE


class _Writer(cst.CSTTransformer):
    """Applies the rules to every node on leaving it."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self.sheet = sheet

    def on_leave(self, old: Any, new: Any) -> Any:
        for rule in _BY_NODE.get(type(old), ()):
            if type(new) is not type(old) or not self.sheet.due(rule.since):
                continue
            replacement = rule.write(self.sheet, old, new)
            if replacement is not None:
                self.sheet.done[rule.title] += 1
                new = replacement
        return new


def _with_imports(tree: cst.Module, sheet: Sheet) -> cst.Module:
    wanted = sheet.wanted
    if not wanted:
        return tree
    modules = (alias if name == alias else f"{name} as {alias}" for alias, name in wanted.items())
    lines = [cst.parse_statement(f"import {text}") for text in modules]
    last = -1
    for place, statement in enumerate(tree.body):
        parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
        if any(isinstance(part, cst.Import | cst.ImportFrom) for part in parts):
            last = place
    return tree.with_changes(body=[*tree.body[: last + 1], *lines, *tree.body[last + 1 :]])
