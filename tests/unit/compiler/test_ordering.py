"""Test `with_schedule` in a run: `Request.schedule`, on every instance of a kernel."""

import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import SourceFile
from nkic.compiler.compiled import Compiled
from nkic.compiler.pipeline import compile_source
from nkic.program.program import Body, Instruction, Loop, instructions
from nkic.specialise.request import Request

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel():
    x = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf)
    y = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=x, value=1.0, name="first", engine=nisa.engine.vector)
    if nl.program_id(0) == 0:
        nisa.memset(dst=y, value=2.0, name="second", engine=nisa.engine.gpsimd)
    nl.fori_loop(0, 2, lambda i: nisa.reciprocal(dst=x, data=x, name="inside"))
    out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    nl.store(out, x)
    return out
"""


def compiled(*schedule: object, lnc: int = 2) -> Compiled:
    request = Request(lnc=lnc, schedule=schedule)
    return compile_source(SourceFile("kernel.py", KERNEL), request, lambda name, importer: None)


def after(body: Body) -> dict[str, tuple[str, ...]]:
    found = {one.number: one for one in instructions(body)}
    return {one.name: tuple(found[n].name for n in one.after) for one in found.values() if one.name}


def test_edges_hold_on_every_core_that_has_both() -> None:
    program = compiled(("second", "first"), ("inside", ["first", "second"])).results["specialise"]
    first, second = map(after, program.cores)
    assert first == {"first": (), "second": ("first",), "inside": ("first", "second")}
    assert second == {"first": (), "inside": ("first",)}
    assert any(isinstance(item, Loop) for item in program.cores[0])


def test_the_program_waits() -> None:
    """Two independent engines: only the edge makes one wait for the other."""

    def waits(one: Compiled) -> int:
        slots = [s for stream in one.executable.streams for s in stream.items]
        return sum(len(s.waits) for s in slots if not hasattr(s, "counter") and s.waits)

    assert waits(compiled(("second", "first"))) > waits(compiled())


def test_a_name_that_only_some_cores_have_is_no_error_and_one_that_none_has_is() -> None:
    compiled(("second", "first"))
    with pytest.raises(CompileFailed) as caught:
        compiled(("second", "frist"))
    (found,) = caught.value.diagnostics
    assert found.code.slug == "bad-schedule" and "`frist`" in found.message
    assert "first" in found.help


def test_an_instruction_keeps_what_depends_on_said() -> None:
    text = KERNEL.replace("nl.fori_loop", "a = nisa.memset(dst=y, value=0.0)\n    nl.fori_loop")
    text = text.replace('name="inside")', 'name="inside").depends_on(a)')
    source = SourceFile("kernel.py", text)
    request = Request(schedule=(("inside", "first"),))
    program = compile_source(source, request, lambda name, importer: None).results["specialise"]
    (inside,) = [o for o in instructions(program.cores[0]) if o.name == "inside"]
    assert isinstance(inside, Instruction) and len(inside.after) == 2
