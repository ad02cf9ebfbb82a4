"""Imports of `neuronxcc.nki`, the namespace of NKI 0.1.

Source: migration guide, 0.1.0 to 0.2.0, new namespace.
"""

from __future__ import annotations

import libcst as cst

from nkic.language.provide import MODULES
from nkic.language.versions.rewritten import DECORATORS, FRAMEWORKS
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import code, names_in
from nkic.resolve.former import PREFIX, ROOT

Import = cst.Import | cst.ImportFrom


def move_import(sheet: Sheet, old: cst.Import, new: cst.Import) -> cst.Import | None:
    """Rewrite `import neuronxcc.nki.isa as nisa` to `import nki.isa as nisa`."""
    for alias in old.names:
        name = code(alias.name).removeprefix(f"{ROOT}.")
        if name != code(alias.name) and name not in MODULES:
            sheet.leave(old, f"`nki` has no module `{name}`", "leave the import out")
            return None
    names = [_moved(imported) for imported in new.names]
    if names == [*new.names]:
        return None
    return new.with_changes(names=names)


def move_import_from(
    sheet: Sheet, old: cst.ImportFrom, new: cst.ImportFrom
) -> Import | cst.RemovalSentinel | None:
    """Rewrite `from neuronxcc import nki` to `import nki`, and `from neuronxcc.nki …` to `from nki
    …`.
    """
    module = code(new.module) if new.module is not None and not new.relative else ""
    if f"{module}.".startswith(f"{PREFIX}."):
        today = module.removeprefix(f"{ROOT}.")
        if today not in MODULES:
            sheet.leave(old, f"`nki` has no module `{today}`", "leave the import out")
            return None
        return _without_decorators(sheet, new.with_changes(module=_parsed(today)), today)
    if module != ROOT or isinstance(new.names, cst.ImportStar):
        return None
    if len(new.names) != 1 or code(new.names[0].name) != "nki":
        sheet.leave(
            old, f"`{ROOT}` has more than NKI in it", "import nki in a statement of its own"
        )
        return None
    alias = new.names[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return cst.Import([_short(alias)])


def _without_decorators(
    sheet: Sheet, new: cst.ImportFrom, module: str
) -> cst.ImportFrom | cst.RemovalSentinel:
    """Remove imports of removed decorators, whose uses another rule removes."""
    if module != "nki" or isinstance(new.names, cst.ImportStar):
        return new
    aliases = [alias for alias in new.names if not _is_removed_decorator(sheet, alias)]
    if len(aliases) == len(new.names):
        return new
    if not aliases:
        return cst.RemoveFromParent()
    aliases[-1] = aliases[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return new.with_changes(names=aliases)


def _is_removed_decorator(sheet: Sheet, alias: cst.ImportAlias) -> bool:
    """Whether the import is of a removed decorator such as `trace` that is used only as one."""
    name = code(alias.name)
    bound = code(alias.asname.name) if alias.asname is not None else name
    uses = (name for name in names_in(sheet.tree) if name.value == bound)
    around = [next(sheet.parents(use)) for use in uses]
    plain = all(isinstance(node, cst.Decorator | cst.ImportAlias | cst.AsName) for node in around)
    return plain and not DECORATORS.get(name, "?")


def move_name(sheet: Sheet, old: cst.Attribute, new: cst.Attribute) -> cst.Name | None:
    """Rewrite `neuronxcc.nki.isa.iota`, written in full, to `nki.isa.iota`."""
    if code(old) != PREFIX or any(isinstance(p, Import) for p in sheet.parents(old)):
        return None
    return cst.Name(PREFIX.removeprefix(f"{ROOT}."))


def _moved(alias: cst.ImportAlias) -> cst.ImportAlias:
    name = code(alias.name)
    if not f"{name}.".startswith(f"{PREFIX}."):
        return alias
    return _short(alias.with_changes(name=_parsed(name.removeprefix(f"{ROOT}."))))


def _short(alias: cst.ImportAlias) -> cst.ImportAlias:
    """Return `import nki` for `import nki as nki`."""
    same = alias.asname is not None and code(alias.asname.name) == code(alias.name)
    return alias.with_changes(asname=None) if same else alias


def _parsed(name: str) -> cst.Name | cst.Attribute:
    expression = cst.parse_expression(name)
    assert isinstance(expression, cst.Name | cst.Attribute)
    return expression


def decorator(
    sheet: Sheet, old: cst.Decorator, new: cst.Decorator
) -> cst.Decorator | cst.RemovalSentinel | None:
    """Rewrite `@nki.benchmark(warmup=5)` to `@nki.jit`, and remove `@nki.trace`."""
    function = old.decorator.func if isinstance(old.decorator, cst.Call) else old.decorator
    if sheet.name_of(function) in FRAMEWORKS:
        return new.with_changes(decorator=sheet.of_module("nki", "jit"))
    name = sheet.name_of(function).removeprefix("nki.")
    if name not in DECORATORS:
        return None
    if not DECORATORS[name]:
        return cst.RemoveFromParent()
    owner = function.value if isinstance(function, cst.Attribute) else cst.Name("nki")
    return new.with_changes(decorator=cst.Attribute(owner, cst.Name(DECORATORS[name])))


def decorator_by_name(sheet: Sheet, old: cst.Attribute, new: cst.Attribute) -> cst.Attribute | None:
    """Rewrite `kernel = nki.trace`, an alias of a decorator, to `kernel = nki.jit`."""
    parent = next(sheet.parents(old))
    name = sheet.name_of(old).removeprefix("nki.")
    if name not in DECORATORS or "." in name or not isinstance(parent, cst.Assign):
        return None
    return new.with_changes(attr=cst.Name("jit"))
