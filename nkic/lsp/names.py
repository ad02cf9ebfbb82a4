"""The names of NKI for the editor: from the stubs, which are written from the instruction table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nkic.base.profiles import Profile
from nkic.language.versions import since
from nkic.machine.instructions import ROWS
from nkic.machine.targets import Target
from nkic.machine.tiles import first_target

STUBS = Path(__file__).parents[1] / "stubs" / "nki"
FILES = {
    "nki.isa": STUBS / "isa" / "__init__.pyi",
    "nki.language": STUBS / "language.pyi",
    "nki.collectives": STUBS / "collectives.pyi",
}
_IMPORT = re.compile(
    r"(?m)^[ \t]*(?:import[ \t]+(nki\.\w+)[ \t]+as[ \t]+(\w+)"
    r"|from[ \t]+nki[ \t]+import[ \t]+(\w+)(?:[ \t]+as[ \t]+(\w+))?)"
)
_TOKEN = re.compile(
    r"#[^\n]*|\"\"\"[\s\S]*?\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|(?P<open>[\w.]*[ \t]*[\[({])|(?P<close>[\])}])|(?P<comma>,)|(?P<name>\w+)[ \t]*=(?!=)"
)
NEAR = 8000  # characters before the cursor in which a call may begin


class Name(NamedTuple):
    """A function, class or constant; `name` is dotted for the members of enumerations."""

    module: str
    name: str
    call: str  # `(dst, src)`; empty if it is not called
    parameters: dict[str, str]  # each with its description
    doc: str
    line: int  # from 1, in the module's stub

    @property
    def page(self) -> str:
        """The page of the instruction or function, as Markdown."""
        described = [f"- `{name}`: {text}" for name, text in self.parameters.items() if text]
        first, _, rest = self.doc.partition("\n")
        has_call = first.startswith(f"{self.name}(")
        head = first if has_call else f"{self.name}{self.call}"
        text = (rest if has_call else self.doc).partition("\n:param")[0].strip()
        source = self.doc.rpartition("\n\nSource: ")
        foot = f"\n\n*Source: {source[2]}*" if source[1] and "Source: " not in text else ""
        rows = "\n".join(described)
        return f"```python\n{head}\n```\n{text}\n\n{rows}{foot}".strip()

    def missing(self, profile: Profile, target: Target) -> str:
        """Return why a version or target does not have it; empty if both do."""
        row = ROWS.get(self.name) if self.module != "nki.language" else None
        if row is None:
            added = {"nki.language": since.LANGUAGE, "nki.isa": since.ISA}.get(self.module, {})
            addition = added.get(self.name)
            later = addition is not None and profile < addition.since
            return f"since NKI {addition.since.label}" if addition and later else ""
        if profile < row.since:
            return f"since NKI {row.since.label}"
        if row.until is not None and profile > row.until:
            return f"until NKI {row.until.label}"
        has = row.generation <= target.generation
        return "" if has else f"on {first_target(row.generation)} and newer"


@cache
def tables() -> dict[str, dict[str, Name]]:
    """Return the names of each module."""
    return {
        module: {name.name: name for name in _names(module, path.read_text("utf-8"))}
        for module, path in FILES.items()
    }


def _names(module: str, text: str) -> Iterator[Name]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node) or ""
            arguments = [*node.args.args, *node.args.kwonlyargs]
            told = dict(re.findall(r"(?m)^:param (\w+): (.*)$", doc))
            parameters = {a.arg: told.get(a.arg, "") for a in arguments}
            call = f"({', '.join(parameters)})"
            yield Name(module, node.name, call, parameters, doc, node.lineno)
        elif isinstance(node, ast.ClassDef):
            yield Name(module, node.name, "", {}, ast.get_docstring(node) or "", node.lineno)
            for member in node.body:
                if isinstance(member, ast.Assign):
                    name = f"{node.name}.{ast.unparse(member.targets[0])}"
                    yield Name(module, name, "", {}, "", member.lineno)
        elif isinstance(node, ast.AnnAssign):
            yield Name(module, ast.unparse(node.target), "", {}, "", node.lineno)


def aliases(text: str) -> dict[str, str]:
    """Return the modules that a file's imports bind, by the names that they bind."""
    bound = {}
    for module, alias, part, other in _IMPORT.findall(text):
        name = module or f"nki.{part}"
        if name in FILES:
            bound[alias or other or part] = name
    return bound


def find(text: str, dotted: str) -> Name | None:
    """Return the name that `nisa.activation` is in a file with this text."""
    head, _, rest = dotted.partition(".")
    return tables().get(aliases(text).get(head, ""), {}).get(rest)


def completions(text: str, dotted: str, profile: Profile, target: Target) -> Iterator[Name]:
    """Yield the names that may follow `nisa.` or `nisa.engine.`."""
    head, _, rest = dotted.partition(".")
    inside = rest.rpartition(".")[0]
    for name in tables().get(aliases(text).get(head, ""), {}).values():
        if name.name.rpartition(".")[0] == inside and not name.missing(profile, target):
            yield name


def call_at(before: str) -> tuple[str, int, str] | None:
    """Return the innermost open call before the cursor: what is called, the number of the
    argument, and its keyword, if it has one.
    """
    stack: list[tuple[str, int, str]] = []
    for token in _TOKEN.finditer(before[-NEAR:]):
        if token["open"]:
            stack.append((token["open"].rstrip("([{ \t") * token["open"].endswith("("), 0, ""))
        elif token["close"] and stack:
            stack.pop()
        elif stack and (token["comma"] or token["name"]):
            called, number, _ = stack[-1]
            stack[-1] = (called, number + bool(token["comma"]), token["name"] or "")
    return stack[-1] if stack and stack[-1][0] else None
