"""Every removed name of NKI names its replacement, in each version; so do deprecated names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nkic.base.diagnostics import Diagnostic
from nkic.base.profiles import Profile
from nkic.language import library, versions
from nkic.language.versions import Deprecated, Removed
from nkic.machine.instructions import ROWS
from tests.harness.kernels import compile_text

OLD_NAMES = versions.of("nki.language", Deprecated)
OLD_SIZES = versions.of("nki.language.tile_size", Deprecated)

TEXT = """# /// nkic
# nki = "{nki}"
# [args]
# a = "float32[128, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl
{imports}

@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    {line}
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
"""
MODULES = {
    name: versions.of(name, Removed) for name in ("nki.language", "nki.isa", "nki", "nki.compiler")
}
VERSIONS = ("beta2", "0.3", "0.4", "0.6")


def said(line: str, nki: str = "0.6", imports: str = "") -> tuple[Diagnostic, ...]:
    return compile_text(TEXT.format(line=line, nki=nki, imports=imports))


def one(line: str, nki: str = "0.6", imports: str = "") -> Diagnostic:
    (found,) = said(line, nki, imports)
    return found


def rows() -> Iterator[tuple[str, str, Removed]]:
    for module, table in MODULES.items():
        yield from ((module, name, gone) for name, gone in table.items())


@pytest.mark.parametrize("nki", VERSIONS)
@pytest.mark.parametrize(("module", "name", "gone"), list(rows()), ids=lambda v: str(v)[:24])
def test_removed_names(module: str, name: str, gone: Removed, nki: str) -> None:
    alias = {"nki.language": "nl", "nki.isa": "nisa"}.get(module, module)
    found = one(f"{alias}.{name}", nki)
    assert (found.code.slug, found.help) == ("removed-name", gone.instead)
    assert f"`{module}.{name}`" in found.message
    assert found.primary is not None
    assert (found.primary.span.line, found.primary.span.column) == (15, 5)


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        ("import nki.compiler as ncc", "ncc.sbuf"),
        ("from nki.compiler import sbuf", "sbuf.alloc"),
    ],
)
def test_removed_modules(imports: str, line: str) -> None:
    found = one(line, imports=imports)
    assert found.code.slug == "removed-name"
    assert "was removed in NKI beta2" in found.message


def test_modules_that_never_were() -> None:
    found = one("isb.memset", imports="import nki.isb as isb")
    assert (found.code.slug, found.message) == ("import-failed", "`nki` has no module `isb`")
    assert found.help == "did you mean `isa`?"


def test_what_is_there_is_not_called_removed() -> None:
    assert not set(versions.of("nki.isa", Removed)) & set(ROWS)
    assert not set(versions.of("nki.language", Removed)) & set(library.public())


@pytest.mark.parametrize("name", sorted(set(library.public()) - set(versions.LANGUAGE)))
def test_functions_of_tensors_came_with_0_3(name: str) -> None:
    found = one(f"nl.{name}(x)", "beta2")
    assert found.code.slug == "needs-profile"
    assert "added in NKI 0.3" in found.message


def deprecations() -> Iterator[tuple[str, Deprecated]]:
    yield from ((f"nl.{name}", old) for name, old in OLD_NAMES.items())
    yield from ((f"nisa.{name}", old) for name, old in versions.of("nki.isa", Deprecated).items())
    yield from ((f"nl.tile_size.{name}", old) for name, old in OLD_SIZES.items())


@pytest.mark.parametrize(("name", "old"), list(deprecations()), ids=lambda v: str(v)[:24])
def test_deprecated_names(name: str, old: Deprecated) -> None:
    for profile in Profile:
        if profile < Profile.BETA2:
            continue
        found = said(f"{name}", profile.label)
        assert len(found) == (profile >= old.since)
        for warning in found:
            assert (warning.code.slug, warning.help) == ("deprecated", old.instead)
            assert f"since NKI {old.since.label}" in warning.message


def test_a_deprecated_name_with_a_successor_has_a_sure_fix() -> None:
    (fix,) = one("n = nl.tile_size.psum_fmax").fixes
    assert (fix.replacement, fix.sure) == ("psum_bank_fmax", True)
    assert (fix.span.column, fix.span.end_column) == (22, 31)
    (fix,) = one("e = nisa.vector_engine").fixes
    assert (fix.replacement, fix.span.column) == ("engine.vector", 14)


def test_a_deprecated_name_that_is_imported_under_another_has_none() -> None:
    found = one("r(2)", imports="from nki.isa import vector_engine as v\nr = lambda n: v")
    assert (found.code.slug, found.fixes) == ("deprecated", ())


@pytest.mark.parametrize(
    ("written", "fixed"),
    [
        ("import neuronxcc.nki.isa as old", "import nki.isa as old"),
        ("from neuronxcc.nki import isa as old", "from nki import isa as old"),
        ("from neuronxcc.nki.isa import memset as old", "from nki.isa import memset as old"),
    ],
)
def test_old_imports_have_a_sure_fix(written: str, fixed: str) -> None:
    found = one("old", imports=written)
    assert [(fix.replacement, fix.sure) for fix in found.fixes] == [(fixed, True)]


def test_an_old_import_of_what_is_gone_has_no_fix() -> None:
    found = one("old.sbuf", imports="import neuronxcc.nki.compiler as old")
    assert (found.code.slug, found.fixes) == ("removed-name", ())
    assert "no such module" in found.help


@pytest.mark.parametrize(
    ("options", "slugs"),
    [
        ("", []),
        ("debug_kernel=True, show_compiler_tb=True", []),
        ("mode='trace'", ["deprecated"]),
        ("platform_target='trn2'", ["removed-name"]),
        ("platfrom_target='trn2'", ["jit-option"]),
    ],
)
def test_options_of_jit(options: str, slugs: list[str]) -> None:
    text = TEXT.format(line="pass", nki="0.6", imports="").replace(
        "@nki.jit", f"@nki.jit({options})"
    )
    assert [found.code.slug for found in compile_text(text)] == slugs
