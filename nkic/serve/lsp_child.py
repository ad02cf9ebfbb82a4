"""The process that compiles documents, under limits that it sets itself before it reads a word.

It answers in plain data. The text is evaluated in the closed world, as by the command.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import isfinite, prod
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from nkic.base import levels
from nkic.base.diagnostics import Diagnostic, Fix, NkicError, UsageFailed
from nkic.base.files import confined
from nkic.base.render.text import json_line
from nkic.base.source import Span
from nkic.base.worker import answer_requests
from nkic.compiler import pipeline
from nkic.compiler.allocate import peak
from nkic.compiler.compiled import Compiled, CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.request import block_of, of_project, parse_options, request_for, stated
from nkic.compiler.semaphores import engine_of
from nkic.machine.operands import Tile
from nkic.machine.targets import PSUM_BANK_BYTES, Buffer, Engine, Target
from nkic.machine.timing import timing
from nkic.program.program import (
    AccessPattern,
    Instruction,
    Program,
    Schedule,
    Tensor,
    View,
    cost_key,
    instructions,
)
from nkic.source import nodes, scopes
from nkic.source.bindings import Kernel
from nkic.source.nodes import ClassDef, FunctionDef
from nkic.source.parse import parse
from nkic.specialise.inline import parse_arg, parse_const
from nkic.specialise.request import Request, RequestOptions

Json = dict[str, Any]
MOST = 1000  # places of tensors in an answer
KINDS = 3  # types of one place, and forms of one call
MISSING = "argument-type-missing"
WORDS = {"target": "target", "nki": "profile", "grid": "grid", "lnc": "lnc"}  # and their settings
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # TOML or a comment must not hold them
_HEAD = re.compile(r"(?:#!.*\n)?(?:#.*coding[:=].*\n)?")  # what must stay in front


def serve(connection: Connection, memory: int) -> None:
    """Answer requests until the connection or the server ends."""
    gc.freeze()
    gc.disable()  # garbage is collected while nobody waits
    # The oldest stay: `checker` replaces the process now and then.
    answer_requests(connection, memory, _answer, partial(gc.collect, 1))


def _answer(request: Mapping[str, Any]) -> Json:
    try:
        return checked(**request)
    except MemoryError:
        return {"failed": "checking this file takes more memory than nkic.memory allows"}
    except Exception as error:  # a bug of nkic must not end the editor's service
        return {"failed": f"internal error: {type(error).__name__}: {error}"}


def checked(
    path: str,
    text: bytes,
    unsaved: Mapping[str, bytes],
    seconds: float,
    level: int,
    last: Mapping[str, Any],
) -> Json:
    """Return what is known of a document: diagnostics, tensors, definitions, costs of calls.

    `last` are the words of the last command that compiled it, for kernels without other types.
    """
    with suppress(OSError):
        os.chdir(Path(path).parent)  # from where [tool.nkic] is searched
    loader = Loader.beside(path)
    loader.unsaved = {Path(name): content for name, content in unsaved.items()}
    answer: Json = {"diagnostics": [], "tensors": [], "outline": None, "target": "", "nki": ""}
    answer |= {"names": [], "costs": [], "kernels": [], "block": None}
    found: list[Diagnostic] = []
    with confined(loader.folders):
        try:
            source = loader.main(path, text)
            kernels = pipeline.list_kernels(source)
            tree, definitions = parse(source), {k.node for k in kernels}
            answer["outline"] = [*_outline(tree.body, definitions)]
            answer["names"] = _renamable(tree.body, definitions)
            end = time.monotonic() + seconds
            for kernel in kernels:
                found += _kernel(kernel, len(kernels) == 1, loader, end, level, last, answer)
        except NkicError as error:
            found += levels.apply(error.diagnostics, levels.DEFAULT, loader.sources)
    lines = [json_line(d, loader.source) for d in loader.relocated(found)]
    answer["diagnostics"] = [json.loads(line) for line in dict.fromkeys(lines)]
    answer["files"] = loader.files
    return answer


def _kernel(
    kernel: Kernel,
    alone: bool,
    loader: Loader,
    end: float,
    level: int,
    last: Mapping[str, Any],
    answer: Json,
) -> Sequence[Diagnostic]:
    """Compile a kernel, add what is known of it to the answer, and return its diagnostics."""
    source = kernel.module.source
    compiled = Compiled(source)
    used: tuple[Json, RequestOptions] | None = None
    try:
        request, used = _request(kernel, alone, last)
        answer |= {"target": request.target.name, "nki": request.profile.label}
        options = CompileOptions(
            last=pipeline.LAST_CHECK,
            seconds=max(0.1, end - time.monotonic()),
            level=level,
        )
        pipeline.compile_source(source, request, loader, options, compiled)
        answer["kernels"].append(_use(kernel.name, compiled.results["schedule"]))
        found = compiled.remarks(levels.DEFAULT, loader.sources)
    except NkicError as error:
        found = levels.apply(error.diagnostics, levels.DEFAULT, loader.sources)
    finally:
        program = compiled.results.get("allocate") or compiled.program
        if program is not None:
            answer["tensors"] += _tensors(program, source.path)[: MOST - len(answer["tensors"])]
        lowered = compiled.results.get("allocate") or compiled.results.get("lower")
        if lowered is not None:
            answer["costs"] += _costs(lowered, source.path, end)[: MOST - len(answer["costs"])]
    words, given = used or ({}, None)
    if any(d.code.slug == MISSING for d in found):  # what the command did not give, a block must
        return [_asking(d, kernel, alone, words) if d.code.slug == MISSING else d for d in found]
    if given is not None:
        with suppress(ValueError):
            rows = _rows(words, given.args, given.consts)
            answer["block"] = _written(kernel, rows) or answer["block"]
    return found


def _request(
    kernel: Kernel, alone: bool, last: Mapping[str, Any]
) -> tuple[Request, tuple[Json, RequestOptions] | None]:
    """Return the request for a kernel, and the settings and options of the last command if its
    types are theirs.

    Of several kernels in a file, the block's types are those of the kernel that it names.
    """
    source = kernel.module.source
    said, used = stated(source, kernel.name), None
    explicit = RequestOptions(kernel=kernel.name)
    is_of_another = not alone and block_of(source).kernel not in (None, kernel.name)
    if is_of_another:
        own = of_project(source, kernel.name)
        said = replace(said, args=own.args, consts=own.consts)
    if last.get("kernel") == kernel.name and not (said.args or said.consts):
        with suppress(UsageFailed):  # the words may not fit what the file says by now
            words = {name: last[name] for name in WORDS if last[name]}
            words = {n: word for n, word in words.items() if getattr(said, WORDS[n]) is None}
            options = parse_options(
                args=last["arg"], consts=last["const"], kernel=kernel.name, **words
            )
            named = {*options.args, *(name.partition(".")[0] for name in options.consts)}
            if named <= {parameter.name for parameter in scopes.parameters(kernel.node.args)}:
                request_for(source, options, os.environ)
                explicit, used = options, (words, options)
    request = request_for(source, explicit, os.environ)
    if is_of_another:
        args, consts = {**said.args, **explicit.args}, {**said.consts, **explicit.consts}
        request = replace(request, args=args, consts=consts)
    return request, used


def _rows(words: Json, args: Mapping[str, Any], consts: Mapping[str, Any]) -> list[str]:
    """Return the rows of a types block. Raises `ValueError` for what a block cannot say."""
    rows = [f"# {name} = {_toml(value)}" for name, value in words.items()]
    rows += ["# [args]"] * bool(args)
    rows += [f'# {name} = "{kind}"' for name, kind in args.items()]
    rows += ["# [consts]"] * bool(consts)
    return rows + [f"# {name} = {_toml(value)}" for name, value in consts.items()]


def _toml(value: Any) -> str:
    """Return a value in TOML. Raises `ValueError` if it cannot be said there."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        value.encode()  # raises for a surrogate
        text = json.dumps(value, ensure_ascii=False)
        return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if isinstance(value, bool | int) and -(1 << 63) <= value < 1 << 63:
        return json.dumps(value)
    if isinstance(value, float) and isfinite(value):
        return json.dumps(value)
    raise ValueError


def _written(kernel: Kernel, rows: Sequence[str]) -> Json | None:
    """Return a types block with these rows, and the line before which it stands; None if the file
    has one.
    """
    if "# /// nkic" in (text := kernel.module.source.text):
        return None
    head = _HEAD.match(text)
    lines = ["# /// nkic", f'# kernel = "{kernel.name}"', *rows, "# ///", ""]
    return {"line": 1 + (head.group().count("\n") if head else 0), "text": "\n".join(lines)}


def _asking(diagnostic: Diagnostic, kernel: Kernel, alone: bool, used: Json) -> Diagnostic:
    """Turn a missing type into a piece of information, with the block that would give it: with
    the settings `used`, and with all that the help says, which has what was given and examples of
    what was not.
    """
    source = kernel.module.source
    if "# /// nkic" in source.text and (alone or block_of(source).kernel in (None, kernel.name)):
        return diagnostic
    words = [*pairwise(shlex.split(diagnostic.help.partition(": ")[2]))]
    args = dict(parse_arg(word) for option, word in words if option == "--arg")
    consts = dict(parse_const(word) for option, word in words if option == "--const")
    try:
        rows = _rows(used, args, consts)
    except ValueError:
        rows = _rows(used, args, {})
    fixes: tuple[Fix, ...] = ()
    if (block := _written(kernel, rows)) is not None:
        at = Span(source.path, block["line"], 1, block["line"], 1)
        fixes = (Fix(at, block["text"], "add a types block"),)
    return replace(
        diagnostic,
        message=f"{diagnostic.message}; only what needs none is checked",
        help="a `# /// nkic` block gives the types",
        fixes=fixes,
    )


def _outline(body: Iterable[Any], kernels: Iterable[Any]) -> Iterator[Json]:
    """Yield the functions and classes, with those inside them."""
    for node in body:
        if isinstance(node, FunctionDef | ClassDef):
            kind = "class" if isinstance(node, ClassDef) else "function"
            yield {
                "name": node.name,
                "kind": "kernel" if any(node is kernel for kernel in kernels) else kind,
                "span": node.span[1:],
                "at": node.name_span[1:],
                "inner": [*_outline(node.body, kernels)],
            }


# Names that these bind are not renamed: other files have them, too, or they have no place of their
# own.
_FIXED = nodes.Import | nodes.ImportFrom | nodes.Global | nodes.Nonlocal | nodes.ExceptHandler
_Scopes = tuple[tuple[Any, frozenset[str]], ...]  # the innermost first, with what they bind


def _renamable(body: Sequence[Any], kernels: Collection[Any]) -> list[Json]:
    """Return the names of a file that can be renamed in it, with all their places.

    Left out are parameters of kernels, which whoever compiles them names, and members of classes,
    which attributes name.
    """
    places: dict[tuple[Any, str], list[Span]] = {}
    fixed, defined, calls = set[str](), dict[Any, nodes.FunctionDef](), list[Any]()

    def use(seen: _Scopes, name: str, span: Span) -> Any:
        key = next(((scope, name) for scope, bound in seen if name in bound), None)
        if key is not None:
            places.setdefault(key, []).append(span)
        return key

    def visit(roots: Iterable[nodes.Node], seen: _Scopes) -> None:
        for node in scopes.nodes_in_scope(roots):
            if isinstance(node, nodes.Name):
                use(seen, node.id, node.span)
            elif isinstance(node, nodes.FunctionDef | nodes.ClassDef):
                key = use(seen, node.name, node.name_span)
                if isinstance(node, nodes.FunctionDef):
                    defined[key] = node
            elif isinstance(node, nodes.Call) and isinstance(node.func, nodes.Name):
                calls.append((node, seen))
            elif isinstance(node, _FIXED) or type(node).__name__.startswith(("Match", "Type")):
                fixed.update(scopes.bound_by([node]), getattr(node, "names", ()))
            if scopes.is_scope(node):
                enter(node, seen)

    def enter(scope: scopes.Scope, seen: _Scopes) -> None:
        bound = scopes.bound(scope)
        if isinstance(scope, nodes.ClassDef):
            fixed.update(bound)
            methods = [n for n in scope.body if isinstance(n, nodes.FunctionDef)]
            fixed.update(p.name for m in methods for p in scopes.parameters(m.args))
        elif isinstance(scope, nodes.FunctionDef | nodes.Lambda):
            for parameter in scopes.parameters(scope.args):
                _, line, column, *_ = parameter.span
                end = column + len(parameter.name)
                at = Span(parameter.span.path, line, column, line, end)
                places.setdefault((scope, parameter.name), []).append(at)
                if scope in kernels:
                    fixed.add(parameter.name)
        inner = tuple(pair for pair in seen if not isinstance(pair[0], nodes.ClassDef))
        visit(scopes.inside(scope), ((scope, bound), *inner))

    visit(body, ((None, scopes.bound_by(body)),))
    for call, seen in calls:
        key = next(((s, call.func.id) for s, bound in seen if call.func.id in bound), None)
        for keyword in call.keywords if key in defined else ():
            _, line, column, *_ = keyword.span
            if (own := (defined[key], keyword.arg)) in places:
                end = column + len(keyword.arg)
                places[own].append(Span(keyword.span.path, line, column, line, end))
    return [
        {"name": name, "at": [span[1:] for span in dict.fromkeys(spans)]}
        for (_, name), spans in places.items()
        if name not in fixed
    ]


def _tensors(program: Program, path: str) -> list[Json]:
    """Return the tensors by name and place of declaration: the types, and the use of the first.

    The first of a place and a memory has the hint of all there: a list has many names.
    """
    arguments = {parameter.tensor.number for parameter in program.inputs}
    named: dict[tuple[str, Span, Buffer], list[Tensor]] = {}
    hinted: dict[tuple[Span, Buffer], list[Tensor]] = {}
    for tensor in program.tensors:
        span = tensor.at.primary
        if span.path == path:
            named.setdefault((tensor.name, span, tensor.buffer), []).append(tensor)
            if tensor.number not in arguments:
                hinted.setdefault((span, tensor.buffer), []).append(tensor)
    uses, found = _uses(program, path), []
    for (name, span, buffer), tensors in named.items():
        first = tensors[0]
        address = program.addresses.get(first.number)
        found.append(
            {
                "name": name,
                "span": span[1:],
                "types": _types(tensors),
                "hint": _types(hinted.pop((span, buffer), ())),
                "number": len(tensors),
                "memory": buffer.value,
                "partitions": first.partitions,
                "bytes": first.bytes,
                "address": [address.partition, address.byte] if address else None,
                "uses": uses.get(first.number),
            }
        )
    return found


def _types(tensors: Iterable[Tensor]) -> str:
    """Return the types; those that differ in sizes alone as one, `float32[128|72, 1000]`, since
    VS Code cuts the hints of a line after 43 characters.
    """
    sizes: dict[tuple[str, int], list[tuple[int, ...]]] = {}
    for tensor in tensors:
        sizes.setdefault((tensor.dtype.name, len(tensor.shape)), []).append(tensor.shape)
    kinds = [
        f"{dtype}[{', '.join(map(_either, zip(*shapes, strict=True)))}]"
        for (dtype, _), shapes in sizes.items()
    ]
    more = f" and {len(kinds) - KINDS} more" if len(kinds) > KINDS else ""
    return " or ".join(kinds[:KINDS]) + more


def _either(sizes: Iterable[int]) -> str:
    each = list(dict.fromkeys(sizes))
    return "|".join(map(str, each[:KINDS])) + "|…" * (len(each) > KINDS)


def _uses(program: Program, path: str) -> dict[int, list[int]]:
    """Return the lines of the first and the last instruction that touch each tensor."""
    uses: dict[int, list[int]] = {}
    for body in program.cores:
        for instruction in instructions(body):
            at = instruction.at.primary
            for operand in instruction.operands if at.path == path else ():
                if isinstance(operand, View | AccessPattern):
                    uses.setdefault(operand.tensor.number, [at.line, at.line])[1] = at.line
    return uses


def _use(kernel: str, ordered: Schedule) -> Json:
    """Return a kernel's time and memory, as the compiler knows them."""
    program = ordered.program
    target = program.target
    return {
        "kernel": kernel,
        "ns": ordered.estimate_ns,
        "busiest_ns": ordered.busiest_ns,
        "sbuf": [peak(program, Buffer.SBUF), target.sbuf_usable],
        "psum": [-(-peak(program, Buffer.PSUM) // PSUM_BANK_BYTES), target.psum_banks],
    }


def _costs(program: Program, path: str, end: float) -> list[Json]:
    """Return what the instructions of each call take, by the place of the call.

    Nothing is told if that is not known by the time `end`.
    """
    forms, calls = dict[object, _Form](), dict[Span, Counter[_Form]]()
    for body in program.cores:
        for number, instruction in enumerate(instructions(body)):
            if number % 1000 == 0 and time.monotonic() >= end:
                return []
            span = instruction.at.primary
            if span.path == path:
                row, operands, attributes, engine = instruction[:4]
                # No cost depends on a number that is an operand.
                tiles = (cost_key(o) if isinstance(o, AccessPattern) else None for o in operands)
                key = (row, attributes, engine, *tiles)
                form = forms.get(key)
                if form is None:
                    form = forms[key] = _form(instruction, program.target)
                calls.setdefault(span, Counter())[form] += 1
    found = []
    for span, counts in calls.items():
        told = [{**form._asdict(), "number": n} for form, n in counts.most_common(KINDS)]
        at = [span.line, span.column]
        found.append({"at": at, "forms": told, "more": len(counts) - KINDS})
    return found


class _Form(NamedTuple):
    """What is told of like instructions; `by` is the engine that triggers a transfer."""

    name: str
    engine: str
    tiles: tuple[tuple[str, str], ...]
    ns: float
    by: str
    trigger_ns: float


def _form(instruction: Instruction, target: Target) -> _Form:
    facts, engine = instruction.facts(target), engine_of(instruction)
    takes, tiles = timing(instruction.row, facts, engine), facts.tiles
    told = tuple((name, _tile(tile, tiles.values())) for name, tile in tiles.items())
    by = takes.by.value if engine is Engine.DMA else ""
    row = instruction.row
    return _Form(row.name, engine.value, told, takes.hold / 1000, by, takes.trigger / 1000)


def _tile(tile: Tile, tiles: Collection[Tile]) -> str:
    """Return a tile's type; one run of elements in HBM has the shape of what it is moved to."""
    shape = [tile.partitions, tile.free] if tile.on_chip else [number for _, number in tile.dims]
    if len(shape) == 1:
        others = ([t.partitions, t.free] for t in tiles if t.on_chip)
        shape = next((other for other in others if prod(other) == tile.free), shape)
    return f"{tile.dtype.name}[{', '.join(map(str, shape))}]{' in hbm' * (not tile.on_chip)}"
