"""Names that NKI renamed, moved or removed, according to the tables of versions.

Sources: nkic/language/versions, which names the pages.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from nkic.base.profiles import Profile
from nkic.language.versions import deprecated, removed
from nkic.language.versions.rewritten import DECORATORS
from nkic.migrate.arguments import keyword_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import code, walk

_DEPRECATED = {
    "nki.language": deprecated.LANGUAGE,
    "nki.isa": deprecated.ISA,
    "nki.language.tile_size": deprecated.TILE_SIZE,
}
_REMOVED = {"nki.language": removed.LANGUAGE, "nki.isa": removed.ISA, "nki": removed.NKI}


class Change(NamedTuple):
    """What became of a name: since when, the advice, and the new name if that is all."""

    since: Profile
    instead: str
    name: str
    python: str
    must: bool  # the name is gone in the target version


def change(sheet: Sheet, qualified: str) -> Change | None:
    """Return the change of a name of `nki` that applies to this migration; None if there is
    none.
    """
    module, _, name = qualified.rpartition(".")
    old, removal = _DEPRECATED.get(module, {}).get(name), _REMOVED.get(module, {}).get(name)
    if removal is not None and sheet.due(removal.since):
        return Change(removal.since, removal.instead, removal.name, "", must=True)
    if old is None or not sheet.due(old.since):
        return None
    must = old.removed_in is not None and sheet.target >= old.removed_in
    return Change(old.since, old.instead, old.name, old.python, must)


def rename_attribute(
    sheet: Sheet, old: cst.Attribute, new: cst.Attribute
) -> cst.BaseExpression | None:
    """Rewrite `nl.affine_range` to `range`, `nisa.vector_engine` to `nisa.engine.vector`."""
    return _renamed(sheet, old, new.value)


def rename_name(sheet: Sheet, old: cst.Name, new: cst.Name) -> cst.BaseExpression | None:
    """Rewrite a name that was imported by itself."""
    return _renamed(sheet, old, None)


def drop_import(sheet: Sheet, old: cst.ImportFrom, new: cst.ImportFrom) -> object | None:
    """Remove `from nki.language import affine_range`, which is no longer used."""
    if isinstance(new.names, cst.ImportStar) or old.module is None or old.relative:
        return None
    module = code(old.module)
    aliases = [alias for alias in new.names if not _is_replaced(sheet, f"{module}.{_plain(alias)}")]
    if len(aliases) == len(new.names):
        return None
    if not aliases:
        return cst.RemoveFromParent()
    aliases[-1] = aliases[-1].with_changes(comma=new.names[-1].comma)
    return new.with_changes(names=aliases)


def _renamed(
    sheet: Sheet, old: cst.Attribute | cst.Name, base: cst.BaseExpression | None
) -> cst.BaseExpression | None:
    qualified = sheet.name_of(old)
    renaming = change(sheet, qualified) if qualified else None
    if renaming is None or _is_part(sheet, old):
        return None
    if renaming.python:
        return cst.Name(renaming.python) if _is_called_plainly(sheet, old) else None
    if not renaming.name:
        if renaming.must:
            sheet.leave(
                old, f"there is no `{qualified}` since NKI {renaming.since.label}", renaming.instead
            )
        return None
    if base is None:
        return sheet.of_module(qualified.rpartition(".")[0], renaming.name)
    return cst.parse_expression(f"{code(base)}.{renaming.name}")


def _is_replaced(sheet: Sheet, qualified: str) -> bool:
    renaming = change(sheet, qualified)
    return renaming is not None and bool(renaming.python or renaming.name)


def _is_part(sheet: Sheet, node: cst.CSTNode) -> bool:
    """Whether the name is in an import, an assignment target, or an attribute's own name."""
    parent = next(sheet.parents(node))
    if isinstance(parent, cst.Attribute):
        return parent.attr is node
    if _is_decorator(sheet, node):
        return True  # handled by another rule
    return isinstance(parent, cst.ImportAlias | cst.AsName | cst.AssignTarget | cst.Param)


def _plain(alias: cst.ImportAlias) -> str:
    return alias.name.value if isinstance(alias.name, cst.Name) else ""


def _is_decorator(sheet: Sheet, node: cst.CSTNode) -> bool:
    """Whether the name is part of a decorator that another rule handles."""
    around = next((p for p in sheet.parents(node) if isinstance(p, cst.Decorator)), None)
    if around is None:
        return False
    call = around.decorator
    function = call.func if isinstance(call, cst.Call) else call
    inside = any(inner is node for inner in walk(function))
    return inside and sheet.name_of(function).removeprefix("nki.") in DECORATORS


def _is_called_plainly(sheet: Sheet, node: cst.CSTNode) -> bool:
    """Whether the call has only positional arguments, as Python's functions take them, or hints."""
    parent = next(sheet.parents(node))
    if not isinstance(parent, cst.Call) or parent.func is not node:
        return True
    function = sheet.name_of(node).rpartition(".")[2]
    keywords = filter(None, map(keyword_of, parent.args))
    removals = (removed.parameter(function, keyword) for keyword in keywords)
    return all(removal is not None and removal.idle for removal in removals)
