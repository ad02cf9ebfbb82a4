"""The pages of the site, as Markdown: those of docs/, and those that are made from the code.

Text that mentions a page or a code of a message becomes a link. A file outside docs/ that a page
links to becomes a page, too.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nkic
from nkic.base import levels
from nkic.base.diagnostics import codes
from nkic.machine.costs import Formula
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.instructions.listing import HEAD, availability, described
from nkic.machine.operands import Row, Tile
from nkic.machine.rules import violations
from nkic.machine.targets import TARGETS, Buffer, Engine, Target
from nkic.machine.timing import timing
from tests.bench.instructions import RANKS
from tests.site.examples import example
from tests.unit.instances import LEGAL, facts_of

PROJECT = Path(__file__).resolve().parents[2]
LIMITS = PROJECT / "tests/data/limits"
# Pages whose place in the site is not their place in the repository.
HOMES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "samples/README.md": "samples.md",
    "course/README.md": "course.md",
}
FENCE = re.compile(r"^(```.*?^```$)", re.M | re.S)
CODE = re.compile(r"(`+[^`].*?`+)", re.S)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
MENTION = re.compile(r"(?<![\w/.])docs/([\w-]+)\.md|\b(NKI\d{4})\b")
SIZES, TYPES = (64, 512, 2048), ("float32", "bfloat16")
OCCUPIED = "Nanoseconds that the engine or the DMA queue is occupied"
LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json"}


def prose() -> dict[str, str]:
    """Return the pages that people write, by their place in the site."""
    sources = {page.relative_to(PROJECT).as_posix() for page in (PROJECT / "docs").glob("*.md")}
    waiting, made = sorted(sources | HOMES.keys()), dict[str, str]()
    while waiting:
        source = waiting.pop()
        if home(source) not in made:
            text = (PROJECT / source).read_text("utf-8")
            if not source.endswith(".md"):
                language = LANGUAGES.get(Path(source).suffix, "text")
                text = f"# {source}\n\n```{language}\n{text.rstrip()}\n```\n"
            linked: set[str] = set()
            made[home(source)] = written(text, source, linked)
            waiting += sorted(linked)
    head = HEAD.replace("Generated from `nkic/machine/instructions`; do not edit. ", "")
    made["instructions.md"] = head + _table_of_instructions()
    return made


def home(source: str) -> str:
    """Return the place in the site of a file of the repository."""
    if source in HOMES:
        return HOMES[source]
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    visible = re.sub(r"(^|/)\.", r"\1", source)  # MkDocs leaves out what is hidden
    return f"files/{visible}" + ("" if visible.endswith(".md") else ".md")


@cache
def title(source: str) -> str:
    text = (PROJECT / source).read_text("utf-8")
    return text.partition("\n")[0].removeprefix("# ") if source.endswith(".md") else source


def written(text: str, source: str, linked: set[str]) -> str:
    """Return the text of a page with the site's links; `linked` gets files outside docs/."""
    here = posixpath.dirname(home(source))

    def to(uri: str) -> str:
        return posixpath.relpath(uri, here or ".")

    def link(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        path, mark, anchor = target.partition("#")
        if "://" in target or not path:
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if not (PROJECT / file).is_file():
            return match[0]
        if not file.startswith("docs/"):
            linked.add(file)
        if label in (file, path):
            label = title(file)
        return f"{picture}[{label}]({to(home(file) if not picture else file[5:])}{mark}{anchor})"

    def mention(match: re.Match[str]) -> str:
        page, code = match.groups()
        if code:
            return f"[{code}]({to(f'errors/{code}.md')})" if code in _numbers() else code
        source = f"docs/{page}.md"
        known = (PROJECT / source).is_file()
        return f"[{title(source)}]({to(home(source))})" if known else match[0]

    return "".join(_pieces(text, link, mention))


Replace = Callable[[re.Match[str]], str]


def _pieces(text: str, link: Replace, mention: Replace) -> Iterator[str]:
    """Return the pieces of a page: blocks and words of code as they are, links and text changed."""
    for number, part in enumerate(FENCE.split(text)):
        if number % 2:
            head, newline, rest = part.partition("\n")
            yield re.sub(r" file=(\S+)", r' title="\1"', head) + newline + rest
            continue
        for line in _lists(part):
            if line.startswith(("#", "    ", "<!--")) and not line.startswith("    - "):
                yield line
                continue
            last = 0
            for found in re.finditer(f"{CODE.pattern}|{LINK.pattern}", line):
                yield MENTION.sub(mention, line[last : found.start()])
                matched = LINK.fullmatch(found[0])
                yield link(matched) if matched else found[0]
                last = found.end()
            yield MENTION.sub(mention, line[last:])


def _lists(text: str) -> Iterator[str]:
    """Return lines, with lists as Python-Markdown wants them: below a blank line, nested by four
    spaces.
    """
    around: set[str] = set()  # the margins of the items above, in this paragraph
    blank = True
    for line in text.splitlines(keepends=True):
        line = re.sub(r"^ {3}(?=\S)", "    ", line)
        item = re.match(r"( *)(?:- |\d+\. )", line)
        if item and item[1] not in around and not blank:
            yield "\n"
        blank = not line.strip()
        around = around | {item[1]} if item else set() if blank else around
        yield line


@cache
def _numbers() -> frozenset[str]:
    return frozenset(code.number for code in codes().values())


def error_pages() -> dict[str, str]:
    """Return a page for each code, and one that lists them."""
    made, rows = {}, ["# Codes of messages", "", "| code | name | meaning |", "|---|---|---|"]
    for code in sorted(codes().values(), key=lambda each: each.number):
        made[f"errors/{code.number}.md"] = levels.page(code.number)
        link = f"[{code.number}](errors/{code.number}.md)"
        rows.append(f"| {link} | `{code.slug}` | {levels.title(code)} |")
    return {**made, "codes.md": "\n".join(rows) + "\n"}


def interface() -> str:
    """Return the page of the Python interface, from its signatures and docstrings."""
    lines = ["# The Python interface", "", "What `import nkic` offers.", ""]
    for name in sorted(nkic.__all__, key=str.lower):
        value = getattr(nkic, name)
        lines += [f"## {name}", "", *_documented(name, value)]
        if inspect.isclass(value):
            for method, member in sorted(vars(value).items()):
                documented = inspect.isfunction(member) or isinstance(member, property)
                if not method.startswith("_") and documented and inspect.getdoc(member):
                    lines += [f"### {name}.{method}", "", *_documented(method, member)]
    return "\n".join(lines)


def _documented(name: str, value: Any) -> list[str]:
    lines = []
    if not isinstance(value, property) and callable(value):
        try:
            signature = str(inspect.signature(value)).replace("'", "")
        except ValueError:
            signature = ""
        lines += ["```python", f"{name}{signature}", "```", ""]
    return [*lines, inspect.getdoc(value) or "", ""]


def _table_of_instructions() -> str:
    rows = ["| instruction | engines, targets, versions | meaning |", "|---|---|---|"]
    for name, row in sorted(ROWS.items()):
        label = name.replace("_", "_<wbr>")
        rows.append(f"| [{label}](instructions/{name}.md) | {availability(row)} | {row.doc} |")
    return "\n".join(rows) + "\n"


def instruction(name: str) -> str:
    """Return the page of an instruction; its example is compiled and run."""
    row = ROWS[name]
    kernel, printed = example(name)
    ranks = row.module == "nki.collectives"
    lines = [
        *(f"# {name}", "", row.doc, "", "```python"),
        *(f"{row.called}({', '.join(row.parameters)})", "```", ""),
        *(f"On {availability(row)}. Source: {row.source}.", "", "## Parameters", ""),
        *(f"- `{key}`: {text}" for key, text in described(row).items()),
        *("", "## Limits", "", *_limits(row), "", "## Time", "", *_costs(row)),
        *("", "## Example", "", f'```python title="{name}.py"', kernel.rstrip(), "```", ""),
        "Compiled and run on random inputs"
        + (f" by {RANKS} ranks, of which this is the first:" if ranks else ":"),
        *("", "```text", printed.rstrip(), "```", "", "[All instructions](../instructions.md)", ""),
    ]
    return "\n".join(lines)


def _limits(row: Row) -> Iterator[str]:
    """Return what each target accepts when one property of the example changes.

    From tests/data/limits, which a test compares with the rules.
    """
    found = _accepted((LIMITS / f"{row.name}.txt").read_text("utf-8"))
    first = next(iter(found.values()))
    names = [name for name in TARGETS if name in found]
    yield "What each target accepts when one property of the example below changes:"
    yield ""
    yield f"| property | {' | '.join(names)} |"
    yield "|---|" + "---|" * len(names)
    for what in first:
        cells = [found[name].get(what, first[what]) for name in names]
        if any(cell and not cell.isdigit() for cell in cells):
            yield f"| {what} | {' | '.join(cells)} |"


def _accepted(text: str) -> dict[str, dict[str, str]]:
    """Return the accepted values by target and property; targets after the first differ from it."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            properties = found.setdefault(line, {})
            continue
        what, _, answers = line.strip().partition(": ")
        if re.fullmatch(r"(partitions|elements) of \w+|\w+ (in|of)", what):
            legal = re.findall(r"(?:^|; )([^;]*?):? legal(?=;|$)", answers)
            properties[_named(what)] = ", ".join(legal)
    return found


def _named(what: str) -> str:
    subject, _, word = what.partition(" ")
    if word in ("in", "of"):
        return f"{'memory' if word == 'in' else 'types'} of {_operand(subject)}"
    return f"{subject} of {_operand(what.rpartition(' ')[2])}"


def _operand(name: str) -> str:
    return "all operands" if name == "all" else f"`{name}`"


def _costs(row: Row) -> Iterator[str]:
    """Return the formula's standing and its figures."""
    cost = row.cost
    if isinstance(cost, Formula):
        if doc := inspect.getdoc(cost.compute):
            formula = re.sub(r" ?\([FAM]\b[^)]*\)", "", doc)  # letters of the formulas' sources
            n = "\n\nN is the number of elements per partition." * bool(re.search(r"\bN\b", doc))
            yield f"{formula}{n}\n"
        yield f"Standing: {cost.standing.value} ({cost.source}).\n"
    made = [
        (
            target,
            engine,
            [_time(row, target, engine, size, kind) for kind in TYPES for size in SIZES],
        )
        for target in TARGETS.values()
        for engine in row.engines
        if row.generation <= target.generation
    ]
    tiles = [value for value in LEGAL[row.name].values() if isinstance(value, Tile)]
    on_chip = all(tile.buffer.on_chip for tile in tiles) and any(map(_long, tiles))
    if on_chip and any(cell for _, _, cells in made for cell in cells):
        yield f"{OCCUPIED}, by elements per partition and type:\n"
        heads = [f"{size} {kind}" for kind in TYPES for size in SIZES]
        yield f"| target, engine | {' | '.join(heads)} |"
        yield "|---|" + "---:|" * len(heads)
        for target, engine, cells in made:
            if any(cells):
                yield f"| {target.name}, {engine.value} | {' | '.join(c or '-' for c in cells)} |"
        return
    yield f"{OCCUPIED} by the example:\n"
    yield from ("| target, engine | ns |", "|---|---:|")
    for target, engine, _ in made:
        if text := _time(row, target, engine, 0, ""):
            yield f"| {target.name}, {engine.value} | {text} |"


def _long(tile: Tile) -> bool:
    return bool(tile.dims) and tile.dims[-1][1] > 1


def _time(row: Row, target: Target, engine: Engine, size: int, kind: str) -> str:
    """Return the time of the legal instance in a size and type; empty if that is not legal."""
    tiles = {name: value for name, value in LEGAL[row.name].items() if isinstance(value, Tile)}
    widest = max((tile.dims[-1][1] for tile in tiles.values() if tile.dims), default=0)
    changes: dict[str, Any] = {}
    for name, tile in tiles.items() if size else ():
        if tile.buffer is not Buffer.PSUM:  # which holds sums in float32
            tile = tile._replace(dtype=DTYPES[kind])
        wide = tile.dims and tile.dims[-1][1] == widest
        changes[name] = tile._replace(dims=((1, size),)) if wide else tile
    _, facts = facts_of(row.name, target, engine, **changes)
    if violations(row, facts):
        return ""
    return f"{timing(row, facts, engine).hold / 1000:,.0f}"


def from_code() -> dict[str, str]:
    """Return the pages that are made from the code, by their place in the site."""
    pages = {f"instructions/{name}.md": instruction(name) for name in ROWS}
    return {**pages, **error_pages(), "interface.md": interface()}
