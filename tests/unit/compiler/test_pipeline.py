"""Test the order of the stages: their results, where they stop, and which proofs run."""

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from nkic import prove
from nkic.artifact.read import load
from nkic.artifact.records import InstructionRecord
from nkic.base.diagnostics import CompileFailed, Reporter, UsageFailed
from nkic.base.source import SourceFile
from nkic.compiler import pipeline
from nkic.compiler.compiled import DEFAULT, Compiled, CompileOptions
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.forms import FORMS
from nkic.compiler.loader import Loader
from nkic.compiler.lower import lower
from nkic.compiler.pipeline import AuditFailed, compile_source, compile_text
from nkic.compiler.request import parse_options, request_for
from nkic.machine.targets import Target
from nkic.program import effects
from nkic.program.overlap import Groups
from nkic.program.program import Body, DependenceGraph, Program
from nkic.program.text import program_text
from nkic.specialise.request import RequestOptions

SOURCE = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def double(a):
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=2.0)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
"""
ARGS = ("a=float32[128,64]",)
A = parse_options(args=ARGS)


def run(
    text: str = SOURCE,
    said: RequestOptions = A,
    options: CompileOptions = DEFAULT,
    compiled: Compiled | None = None,
) -> Compiled:
    loader = Loader.beside("k.py")
    source = loader.main("k.py", text.encode())
    request = request_for(source, said, {})
    return compile_source(source, request, loader, options, compiled)


def slugs(failure: pytest.ExceptionInfo[CompileFailed]) -> list[str]:
    return [d.code.slug for d in failure.value.diagnostics]


def test_every_stage_leaves_something_in_its_order() -> None:
    compiled = run()
    assert list(compiled.results) == list(pipeline.STAGES)
    assert [t.stage for t in compiled.timings] == list(pipeline.STAGES)
    assert all(t.ns >= 0 and t.peak_bytes > 0 for t in compiled.timings)
    assert compiled.warnings == ()
    assert load(compiled.data).streams == compiled.executable.streams


@pytest.mark.parametrize("last", list(pipeline.STAGES))
def test_it_stops_where_it_is_told(last: str) -> None:
    stages = list(pipeline.STAGES)
    done = stages[: stages.index(last) + 1]
    assert list(run(options=CompileOptions(last=last)).results) == done


def test_results_that_nobody_will_read_are_given_up() -> None:
    compiled = run(options=CompileOptions(keep=frozenset({"depend"})))
    left = set(pipeline.STAGES) - {"specialise", "lower", "search"}
    assert set(compiled.results) == left
    assert compiled.first_plan is None
    assert compiled.data == run().data
    assert compiled.program is compiled.results["allocate"]
    assert ("k.py", 9) in compiled.lines()  # as for the program with views


def test_the_program_with_views_is_freed_after_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Program]] = []

    def noted(program: Program, report: Reporter, groups: Groups) -> Program:
        made.append(weakref.ref(program))
        return lower(program, report, groups)

    def looked(program: Program) -> tuple[DependenceGraph, ...]:
        assert made[0]() is None
        return depend(program)

    monkeypatch.setattr(pipeline, "lower", noted)
    monkeypatch.setattr(pipeline, "depend", looked)
    run(options=CompileOptions(keep=frozenset()))
    assert len(made) == 1


def test_every_form_names_a_stage() -> None:
    assert {form.stage for form in FORMS.values()} <= set(pipeline.STAGES)


def test_serial_orders_every_pair() -> None:
    def waits(compiled: Compiled) -> int:
        items = (item for stream in compiled.executable.streams for item in stream.items)
        return sum(len(item.waits) for item in items if isinstance(item, InstructionRecord))

    more = "    y = nl.zeros(a.shape, dtype=a.dtype, buffer=nl.sbuf)\n    return out"
    text = SOURCE.replace("    return out", more)  # a fourth instruction that nothing depends on
    assert waits(run(text, options=CompileOptions(serial=True))) == 3
    assert waits(run(text)) == 2


def test_the_notes_of_the_build() -> None:
    meta = run(said=parse_options(args=ARGS, nki="0.5")).executable.meta
    assert meta["nki"] == "0.5"
    assert meta["serial"] == "no"
    assert (meta["sbuf_peak"], meta["psum_peak"]) == ("256", "0")
    assert int(meta["estimate_ns"]) > 1000


def test_peaks_count_bytes_that_change_hands_once() -> None:
    body = "".join(
        f"    t{i} = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)\n"
        f"    nisa.tensor_copy(dst=t{i}, src={'x' if i == 0 else f't{i - 1}'})\n"
        for i in range(40)
    )
    text = SOURCE.replace("    out =", body + "    out =").replace(
        "src=x)\n    return", "src=t39)\n    return"
    )
    slots = int(run(text).executable.meta["sbuf_peak"]) // 256
    assert 2 < slots < 15  # of 41 tensors; freed slots stay free for a while before they are reused


@pytest.mark.parametrize("stage", ["allocate", "schedule"])
def test_a_finding_of_an_audit_is_no_fault_of_the_kernel(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = {"allocate": "prove_addresses", "schedule": "prove_order"}[stage]
    monkeypatch.setattr(prove, proof, lambda *made: ["one", "two"])
    with pytest.raises(AuditFailed, match=f"{stage} produced a wrong program: one, and 1 more"):
        run()


def test_what_the_runner_would_refuse_is_a_bug_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "emit", lambda *words: replace(emit(*words), cores=9))
    with pytest.raises(AuditFailed, match="emit produced a wrong program: 9 cores"):
        run()


def test_errors_of_several_stages_come_together() -> None:
    text = SOURCE.replace(
        "    return out",
        "    nisa.dma_copy(dst=x, src=a[0:200, :])\n"
        "    nisa.dma_copy(dst=x, src=a[:, 0:3])\n"
        "    y = nl.ndarray((128, 60000), dtype=a.dtype, buffer=nl.sbuf)\n"
        "    nisa.memset(dst=y, value=0.0)\n"
        "    return out",
    )
    with pytest.raises(CompileFailed) as failure:
        run(text)
    assert slugs(failure) == ["index-out-of-bounds", "element-count-mismatch", "sbuf-overflow"]


def test_an_error_that_ends_the_evaluation_does_not_hide_the_ones_before() -> None:
    text = SOURCE.replace(
        "    return out",
        "    nisa.dma_copy(dst=x, src=a[:, 0:3])\n    assert False, 'enough'\n    return out",
    )
    with pytest.raises(CompileFailed) as failure:
        run(text)
    assert sorted(slugs(failure)) == ["assertion-failed", "element-count-mismatch"]


def test_no_more_errors_than_wanted() -> None:
    wrong = "".join(f"    nisa.dma_copy(dst=x, src=a[:, 0:{n}])\n" for n in range(1, 9))
    text = SOURCE.replace("    return out", wrong + "    return out")
    for most in (1, 3, 8, 20):
        with pytest.raises(CompileFailed) as failure:
            run(text, options=CompileOptions(max_errors=most))
        assert len(slugs(failure)) == min(most, 8)


def test_wrong_arguments_are_wrong_usage() -> None:
    with pytest.raises(UsageFailed, match="no type for `a`"):
        run(said=parse_options())
    with pytest.raises(UsageFailed, match="`b`"):
        run(said=parse_options(args=(*ARGS, "b=float32[1]")))


def test_after_a_failure_the_results_until_then_are_there() -> None:
    text = SOURCE.replace("src=a)", "src=a[:, 0:3])")
    compiled = Compiled(SourceFile("k.py", text))
    with pytest.raises(CompileFailed):
        run(text, compiled=compiled)
    assert list(compiled.results) == ["parse", "resolve", "specialise"]


def test_a_program_text_goes_on_from_where_it_was_printed() -> None:
    compiled = run()
    for stage in ("specialise", "lower", "allocate"):
        text = SourceFile("p.ir", program_text(compiled.results[stage]))
        again = compile_text(text, lambda path: compiled.source if path == "k.py" else None)
        assert "parse" not in again.results
        assert again.data == compiled.data


@pytest.mark.parametrize(
    "text", ["", "program", "program p on trn9", "program p on trn2\ncore\n  #0 any f()\n", "x\n"]
)
def test_text_that_is_no_program(text: str) -> None:
    with pytest.raises(CompileFailed) as failure:
        compile_text(SourceFile("p.ir", text), lambda path: None)
    assert slugs(failure) == ["bad-program-text"]


def test_the_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    run()
    assert gc.isenabled()
    gc.disable()
    try:
        run()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_kernels_are_listed(tmp_path: Path) -> None:
    text = SOURCE.replace("def double(a):", "def double(\n    a,  # in\n    *, n=(1, 2),\n):")
    [kernel] = pipeline.list_kernels(SourceFile("k.py", text))
    assert kernel.signature == "double(a, *, n=(1, 2))"


def test_looking_further_never_hides_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "depend", lambda program: 1 // 0)
    with pytest.raises(CompileFailed) as failure:
        run(SOURCE.replace("src=a)", "src=a[:, 0:3])"))
    assert slugs(failure) == ["element-count-mismatch"]


@pytest.mark.parametrize(("level", "times"), [(0, 1), (1, 2)])
def test_a_large_program_frees_its_graphs_and_builds_them_again_for_search(
    monkeypatch: pytest.MonkeyPatch, level: int, times: int
) -> None:
    """Three instructions in a chain: no engine is busy all the time, so search tries others.

    The accesses of a program are read for its graphs alone, not again for its notes.
    """
    kept = run(options=CompileOptions(level=level))
    built: list[Program] = []
    readings: list[Body] = []
    read = effects.Accesses.__init__

    def counted_reading(accesses: effects.Accesses, body: Body, target: Target) -> None:
        readings.append(body)
        read(accesses, body, target)

    monkeypatch.setattr(effects.Accesses, "__init__", counted_reading)

    def counted(program: Program) -> tuple[DependenceGraph, ...]:
        built.append(program)
        return depend(program)

    monkeypatch.setattr(pipeline, "depend", counted)
    monkeypatch.setattr("nkic.compiler.compiled.MANY_INSTRUCTIONS", 2)
    freed = run(options=CompileOptions(level=level, keep=frozenset()))
    assert freed.data == kept.data
    assert len(built) == times
    assert len(readings) == times
