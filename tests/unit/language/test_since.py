"""Test the names of nki.language in each version of NKI: data, the table in docs/language.md,
messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nkic.base.diagnostics import CompileFailed, Diagnostic
from nkic.base.profiles import Profile
from nkic.language import library, versions
from nkic.language.provide import names
from nkic.language.versions import Added, Deprecated, Removed
from tests.harness.bless import blessing
from tests.harness.language import run

OLD_NAMES = versions.of("nki.language", Deprecated)
OLD_SIZES = versions.of("nki.language.tile_size", Deprecated)

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel():
    t = nl.ndarray((128, 4, 8), dtype=nl.float32, buffer=nl.sbuf{address})
    h = nl.ndarray((128, 4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.memset(dst=t, value=0.0)
    nisa.dma_copy(dst=h, src=t)
    {line}
    return h
"""


def said(line: str, profile: Profile, address: str = "") -> tuple[Diagnostic, ...]:
    text = KERNEL.format(line=line, address=address)
    try:
        return run(text, {}, profile=profile)[1]
    except CompileFailed as failed:
        return failed.diagnostics


LINES = {
    "data": "nisa.memset(t.data, 1.0)",
    "slice": "t.slice(1, 0, 2)",
    "select": "t.select(1, 0)",
    "vector_select": "h.vector_select(0, nl.ndarray((8, 1), nl.int32, nl.sbuf))",
    "permute": "t.permute((0, 2, 1))",
    "broadcast": "t[:, 0:1].broadcast(1, 2)",
    "expand_dim": "t.expand_dim(1)",
    "squeeze_dim": "t[:, 0:1].squeeze_dim(1)",
    "reshape_dim": "t.reshape_dim(1, (2, 2))",
    "flatten_dims": "t.flatten_dims(1, 2)",
    "rearrange": "t.rearrange(('p', 'a', 'b'), ('p', 'b', 'a'))",
    "is_contiguous": "t.is_contiguous()",
    "is_indirect": "t.is_indirect()",
}


@pytest.mark.parametrize("name", LINES)
def test_methods_of_tensors(name: str) -> None:
    new = versions.TENSOR[name]
    assert not [d for d in said(LINES[name], new.since) if d.level.value == "error"]
    (found,) = said(LINES[name], Profile(new.since - 10))
    assert found.code.slug == "needs-profile"
    assert f"`{name}` of tensors: it was added in NKI {new.since.label}" in found.message
    assert found.primary is not None and found.primary.span.line == 12


def test_every_new_method_is_tried() -> None:
    assert set(versions.TENSOR) == {*LINES, "indirect"}


@pytest.mark.parametrize("name", versions.TILE_SIZE)
def test_sizes(name: str) -> None:
    new, line = (
        versions.TILE_SIZE[name],
        f"assert nl.tile_size.{name} > 0",
    )
    assert said(line, new.since) == ()
    (found,) = said(line, Profile.NKI_0_3)
    assert found.code.slug == "needs-profile" and new.since.label in found.message


def test_former_names_of_sizes_are_there_in_every_version() -> None:
    line = "assert nl.tile_size.psum_fmax == 512 and nl.tile_size.total_available_sbuf_size > 1e5"
    assert said(line, Profile.NKI_0_3) == ()
    assert {d.code.slug for d in said(line, Profile.NKI_0_4)} == {"deprecated"}


@pytest.mark.parametrize("name", versions.LANGUAGE)
def test_names(name: str) -> None:
    new = versions.LANGUAGE[name]
    library_names = library.public()
    assert name in names(new.since, library_names)
    assert name not in names(Profile(new.since - 10), library_names)
    (found,) = said(f"print(nl.{name})", Profile(new.since - 10))
    assert found.code.slug == "needs-profile" and found.help == new.instead


def test_beta2_has_addresses() -> None:
    assert said("pass", Profile.NKI_0_3, ", address=(0, 0)") == ()
    assert said("pass", Profile.BETA2, ", address=(0, 0)") == ()


def test_beta2_takes_no_slice_of_a_slice() -> None:
    line = "nisa.memset(dst=t[:, 0:2][:, 0:1], value=1.0)"
    assert said(line, Profile.NKI_0_3) == () == said(line.replace("[:, 0:2]", ""), Profile.BETA2)
    assert said("t.reshape((128, 32))[:, 0:4]", Profile.BETA2) == ()
    (found,) = said(line, Profile.BETA2)
    assert "slice of a slice: it was added in NKI 0.3" in found.message


# The table


def rows() -> Iterator[str]:
    """Return the names that were added, deprecated and removed, in the order of the data."""
    came = [
        *((f"nl.{name}", new) for name, new in versions.LANGUAGE.items()),
        *((f"nisa.{name}", new) for name, new in versions.of("nki.isa", Added).items()),
        *((f"nl.tile_size.{name}", new) for name, new in versions.TILE_SIZE.items()),
        *((f"t.{name}", new) for name, new in versions.TENSOR.items()),
    ]
    yield f"| functions of tensors: nl.load, nl.add … | {Profile.NKI_0_3.label} |  |  | nisa |"
    nested = ("an index of an index: t[0:64][8:16]", versions.NESTED)
    for name, new in [nested, *came]:
        yield f"| {name} | {new.since.label} |  |  | {new.instead} |"
    late = [
        *((f"nl.{name}", old) for name, old in OLD_NAMES.items()),
        *((f"nl.tile_size.{name}", old) for name, old in OLD_SIZES.items()),
        ("for i in nl.dynamic_range", versions.DYNAMIC_FOR),
        ("while register", versions.DYNAMIC_WHILE),
    ]
    for name, old in late:
        went = old.removed_in.label if old.removed_in else ""
        yield f"| {name} |  | {old.since.label} | {went} | {old.instead} |"
    for name, gone in versions.of("nki.language", Removed).items():
        yield f"| nl.{name} |  |  | {gone.since.label} | {gone.instead} |"


def table() -> str:
    head = ["| what | came | deprecated | went | instead |", "|---" * 5 + "|"]
    return "\n".join([*head, *rows()])


def test_the_documented_table_is_this_one() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "language.md"
    before, begin, rest = page.read_text("utf-8").partition("<!-- versions: begin -->\n")
    shown, end, after = rest.partition("\n<!-- versions: end -->")
    assert begin and end
    if blessing():
        page.write_text(before + begin + table() + end + after, "utf-8")
    else:
        assert shown == table(), "run this test with NKIC_BLESS=1"
