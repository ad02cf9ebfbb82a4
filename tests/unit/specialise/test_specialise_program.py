"""Test the way from a kernel and a request to a program: arguments, instances, outputs, errors."""

from typing import Any

import pytest

from nkic.base.diagnostics import CompileFailed, Diagnostic, NkicError, Reporter
from nkic.base.limits import Limits
from nkic.base.profiles import DEFAULT, Profile
from nkic.base.source import SourceFile
from nkic.compiler.compiled import Compiled
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.language.trace import RECORDING, VIEWING
from nkic.machine.targets import Buffer
from nkic.program.program import Instruction, Loop, Program, View
from nkic.source.parse import parse
from nkic.source.resolve import resolve
from nkic.specialise import PROVIDED, specialise
from nkic.specialise.inline import parse_arg, parse_const, parse_type
from nkic.specialise.request import Request, TensorType

HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl
import nki.typing as nt

"""
COPY = (
    HEAD
    + """
@nki.jit
def kernel(a):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    {end}
"""
)


NKI_0_6 = Profile.NKI_0_6  # the last version with loops over dynamic_range and registers


def request(*args: str, consts: tuple[str, ...] = (), **more: Any) -> Request:
    return Request(
        args=dict(parse_arg(text) for text in args),
        consts=dict(parse_const(text) for text in consts),
        **more,
    )


def compiled(text: str, wanted: Request) -> tuple[Program, tuple[Diagnostic, ...]]:
    report = Reporter()
    resolved = resolve(
        SourceFile("k.py", text),
        wanted.kernel,
        load=lambda name, importer: None,
        parse=parse,
        provided=PROVIDED,
        report=report,
        profile=wanted.profile,
    )
    return specialise(resolved, wanted, report), report.all


def program(text: str, wanted: Request | None = None) -> Program:
    made, warnings = compiled(text, wanted or request("a=float32[128,64]"))
    assert [one for one in warnings if one.code.slug != "deprecated"] == []
    return made


def said(text: str, wanted: Request | None = None) -> tuple[Diagnostic, ...]:
    """Return the diagnostics: errors of a rejected kernel, or warnings about an accepted one."""
    try:
        return compiled(text, wanted or request("a=float32[128,64]"))[1]
    except NkicError as failure:
        return failure.diagnostics


def one(text: str, wanted: Request | None = None) -> Diagnostic:
    (found,) = said(text, wanted)
    return found


# Inputs and outputs


def test_a_program() -> None:
    made = program(COPY.format(end="return out"))
    assert [p.name for p in made.inputs] == ["a"]
    assert [(p.name, p.tensor.shape) for p in made.outputs] == [("output_0", (128, 64))]
    assert made.inputs[0].tensor.buffer is Buffer.SHARED_HBM
    assert [i.row.name for i in made.cores[0] if isinstance(i, Instruction)] == ["dma_copy"] * 2
    assert [i.number for i in made.cores[0] if isinstance(i, Instruction)] == [0, 1]
    assert made.arguments == {"a": "float32[128,64]"}
    assert made.name == "kernel"


def test_places_are_those_of_the_source() -> None:
    text = COPY.format(end="return out")
    first = program(text).cores[0][0]
    assert isinstance(first, Instruction)
    assert SourceFile("k.py", text).text_of(first.at.span) == "nisa.dma_copy(dst=tile, src=a)"


@pytest.mark.parametrize(
    ("end", "names"),
    [
        ("return out", ["output_0"]),
        ("return (out,)", ["output_0"]),
        ("return [out]", ["output_0"]),
        ("nisa.dma_copy(dst=a, src=tile); return out", ["output_0", "a"]),
        ("nisa.dma_copy(dst=a, src=tile); return out, a", ["output_0", "output_1", "a"]),
    ],
)
def test_names_of_outputs(end: str, names: list[str]) -> None:
    made = program(COPY.format(end=end))
    assert [p.name for p in made.outputs] == names
    if "a" in names:
        assert made.outputs[-1].tensor is made.inputs[0].tensor


def test_an_input_updated_in_place_is_an_output_without_return() -> None:
    text = HEAD + "@nki.jit\ndef kernel(a):\n    nisa.dma_copy(dst=a[0:64, :], src=a[64:128, :])\n"
    made = program(text)
    assert [(p.name, p.tensor) for p in made.outputs] == [("a", made.inputs[0].tensor)]


def test_a_reshape_of_the_whole_has_the_returned_shape() -> None:
    made = program(COPY.format(end="return out.reshape((64, 2, 64))"))
    assert made.outputs[0].tensor.shape == (64, 2, 64)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("return tile", "float32[128, 64] in sbuf"),
        ("return out, 3", "output 1 is 3"),
        ("return (out, (a,))", "output 1 is a nested tuple"),
        ("return out[0:64, :]", "a part of float32[128, 64] in shared_hbm"),
        ("return out.permute((1, 0))", "in another order"),
        ("return out, out", "again"),
        ("return {'x': out}", "output 0 is {'x'"),
    ],
)
def test_what_cannot_be_returned(end: str, words: str) -> None:
    found = one(COPY.format(end=end))
    assert (found.code.slug, found.level.value) == ("bad-return", "error")
    assert words in found.message


def test_private_outputs_went_with_0_3() -> None:
    text = COPY.format(end="return out").replace("nl.shared_hbm", "nl.private_hbm")
    assert one(text).code.slug == "bad-return"
    beta2 = request("a=float32[128,64]", profile=Profile.BETA2)
    assert len(program(text, beta2).outputs) == 1


@pytest.mark.parametrize(
    ("end", "slugs"),
    [
        ("return nl.ndarray((4,), nl.int8, nl.shared_hbm), out", ["output-not-written"]),
        ("return a", ["input-returned", "output-not-returned"]),
        ("return None", ["output-not-returned"]),
    ],
)
def test_warnings_about_outputs(end: str, slugs: list[str]) -> None:
    found = said(COPY.format(end=end))
    assert [d.code.slug for d in found] == slugs
    assert {d.level.value for d in found} == {"warning"}


# Arguments

TAKES = HEAD + "@nki.jit\ndef kernel({parameters}):\n    print({shown})\n"


def printed(parameters: str, shown: str, wanted: Request) -> str:
    made = program(TAKES.format(parameters=parameters, shown=shown), wanted)
    return "".join(made.messages).strip()


@pytest.mark.parametrize(
    ("const", "shown"),
    [
        ("n=3", "3"),
        ("n=(1, 2.5)", "(1, 2.5)"),
        ("n='text'", "text"),
        ("n=bfloat16", "bfloat16"),
        ("n=nl.float32", "float32"),
        ("n=nl.add", "nl.add"),
        ("n=[nl.int8, null]", "[int8, None]"),
        ("n=Mode.FAST", "Mode.FAST"),
        ("n=LIMIT", "12"),
    ],
)
def test_constants(const: str, shown: str) -> None:
    head = "from enum import Enum\nclass Mode(Enum):\n    FAST = 1\nLIMIT = 3 * 4\n"
    text = head + TAKES.format(parameters="n", shown="str(n)")
    made = program(text, request(consts=(const,), kernel="kernel"))
    assert "".join(made.messages).strip().endswith(shown)


def test_a_name_that_means_nothing() -> None:
    found = one(TAKES.format(parameters="n", shown="n"), request(consts=("n=nl.ad",)))
    assert (found.code.slug, found.help) == ("bad-argument", "did you mean `add`?")


def test_kinds_of_parameters_and_defaults() -> None:
    wanted = request("b=int8[4]", consts=("c=5",), profile=Profile.NKI_0_6)
    assert printed("a=1, /, b=None, *, c=3, d=4", "a, b.shape, c, d", wanted) == "1 (4,) 5 4"


def test_annotations_give_shapes() -> None:
    text = "ROWS = 64\n" + TAKES.format(
        parameters="a: nt.tensor[ROWS * 2, 512], b: 'anything' = 1", shown="a.shape, a.dtype"
    )
    made = program(text, request("a=bf16"))
    assert "".join(made.messages) == "(128, 512) bfloat16\n"


def test_like_fills_what_is_missing() -> None:
    wanted = Request(like={"a": parse_type("float16[7]", "--like"), "zz": TensorType()})
    assert printed("a, n=1", "a.shape, n", wanted) == "(7,) 1"


def test_missing_types_show_the_whole_signature() -> None:
    text = TAKES.format(parameters="a, b, c: nt.tensor[4, 5], n, m: int, eps=1e-6", shown="a")
    wanted = Request(
        args={"a": parse_type("float16[128,512]", "--arg a")},
        like={
            "b": TensorType(None, (4,), "--like d.npz", "its NumPy type '<f8' is not an NKI dtype")
        },
        consts={"n": 3},
    )
    found = one(text, wanted)
    assert found.code.slug == "argument-type-missing"
    assert "`b`, `c`, `m`" in found.message
    assert found.notes[0].split("\n") == [
        "kernel(",
        "  a: float16[128,512] (--arg a)",
        "  b: --like d.npz: its NumPy type '<f8' is not an NKI dtype",
        "  c: DTYPE[4,5] (annotation)",
        "  n: 3 (given)",
        "  m: missing",
        "  eps: 1e-6 (default)",
        ")",
    ]
    assert found.help == (
        "complete and run: nkic k.py -k kernel --arg 'a=float16[128,512]' --arg 'b=float16[4]' "
        "--arg 'c=float16[4,5]' --const n=3 --const m=1"
    )


def test_a_count_is_no_tensor() -> None:
    text = TAKES.format(parameters="a, n, b", shown="[i for i in range(0, n)], range(b.shape[0])")
    found = one(text, request("a=int8[1]"))
    assert found.help.endswith("--arg 'a=int8[1]' --const n=1 --arg 'b=int8[1]'")


def test_unknown_arguments_are_all_named() -> None:
    found = one(COPY.format(end="return out"), request("aa=int8[1]", consts=("x=1",)))
    assert found.code.slug == "unknown-argument"
    assert "`aa`, `x`" in found.message
    assert found.help == "did you mean `a`?"


# Instances

SPMD = (
    HEAD
    + """
@nki.jit
def kernel(a):
    i, n = nl.program_id(0), nl.num_programs(0)
    rows = a.shape[0] // n
    tile = nl.ndarray((rows, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a[i * rows : (i + 1) * rows, :])
    scratch = nl.ndarray((rows, 64), dtype=a.dtype, buffer=nl.private_hbm)
    nisa.dma_copy(dst=scratch, src=tile)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[i * rows : (i + 1) * rows, :], src=scratch)
    return out
"""
)


def test_a_grid_on_one_core() -> None:
    made = program(SPMD, request("a=float32[128,64]", grid=(2,)))
    assert [len(body) for body in made.cores] == [6]
    assert [t.buffer.value for t in made.tensors].count("shared_hbm") == 2
    assert [t.buffer.value for t in made.tensors].count("hbm") == 2
    last = made.cores[0][5]
    assert isinstance(last, Instruction)
    assert last.number == 5
    dst = last.operand("dst")
    assert isinstance(dst, View)
    assert (dst.offset, dst.tensor) == (64 * 64, made.outputs[0].tensor)


def test_two_cores() -> None:
    made = program(SPMD, request("a=float32[128,64]", lnc=2))
    assert [len(body) for body in made.cores] == [3, 3]
    assert [i.number for i in made.cores[1] if isinstance(i, Instruction)] == [0, 1, 2]
    assert len(made.outputs) == 1


@pytest.mark.parametrize("wanted", [{"grid": (3,), "lnc": 2}, {"lnc": 3}])
def test_grids_that_do_not_fit(wanted: dict[str, Any]) -> None:
    assert one(SPMD, request("a=float32[128,64]", **wanted)).code.slug == "bad-grid"


def test_shared_tensors_must_agree() -> None:
    text = SPMD.replace("nl.ndarray(a.shape, dtype", "nl.ndarray((128 + i, 64), dtype")
    assert one(text, request("a=float32[128,64]", grid=(2,))).code.slug == "shared-tensor-differs"


def test_program_ids_without_a_grid() -> None:
    text = TAKES.format(
        parameters="", shown="nl.program_id(0), nl.num_programs(), nl.program_ndim()"
    )
    assert "".join(program(text, request()).messages) == "0 1 0\n"


def test_module_values_start_afresh_in_every_instance() -> None:
    text = (
        "SEEN = []\n"
        + HEAD
        + (
            "@nki.jit\ndef kernel(a):\n    assert a.shape\n"
            "    SEEN.append(nl.program_id(0))\n    print(SEEN)\n"
        )
    )
    made = program(text, request("a=float32[4]", grid=(2,)))
    assert made.messages == ("[0]\n", "[1]\n")


# Errors


def test_independent_mistakes_are_all_reported_with_lines() -> None:
    text = COPY.format(
        end="""nisa.tensor_copy(dst=tile[:, 0:65], src=tile)
    nisa.activation(dst=tile, op=nl.exp, dat=tile)
    tall = nl.ndarray((129, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tall, value=0.0)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op="add")
    tile.reshape((128, 65))
    return out"""
    )
    found = said(text)
    start = text.split("\n").index("    nisa.tensor_copy(dst=tile[:, 0:65], src=tile)") + 1
    lines = [(d.code.slug, d.primary.span.line - start) for d in found if d.primary]
    assert lines == [
        ("index-out-of-bounds", 0),
        ("wrong-call", 1),
        ("too-many-partitions", 2),
        ("argument-kind", 4),
        ("reshape-size", 5),
    ]


def test_an_error_names_the_tensor_and_the_calls() -> None:
    text = (
        HEAD
        + """
def part(t, i):
    return t[:, i : i + 32]

@nki.jit
def kernel(a):
    tile = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    for i in range(0, 96, 32):
        part(tile, i)
"""
    )
    found = one(text)
    assert found.primary is not None
    source = SourceFile("k.py", text)
    assert source.text_of(found.primary.span) == "t[:, i : i + 32]"
    assert [source.text_of(label.span) for label in found.labels] == [
        "part(tile, i)",
        "nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)",
        "i",
    ]


@pytest.mark.parametrize(
    ("line", "slug", "words"),
    [
        ("if tile[0:1, 0:1]: pass", "tensor-value", "no decision can depend on them"),
        ("for row in tile: pass", "tensor-value", "iterated"),
        ("float(tile)", "tensor-value", "number"),
        ("tile.T", "unknown-attribute", "`T`"),
        ("tile.shpae", "unknown-attribute", "`shpae`"),
        ("tile.slice(1, 0)", "wrong-call", "missing 1 required positional argument"),
        ("tile.permute(3)", "argument-kind", "permute does not accept these arguments"),
        ("tile.reshape('xy')", "bad-shape", "('x', 'y')"),
        ("tile + 'x'", "wrong-type", "unsupported operand"),
        ("nl.ndarray((128, 64))", "wrong-call", "nl.ndarray() missing 1"),
        ("nl.ndarray((128, 64), nl.float64)", "unknown-dtype", "float64"),
        ("nl.ndarray((128, 0.5), nl.int8)", "bad-shape", "is a float"),
        ("nl.ndarray((128,), nl.int8)", "bad-shape", "at least 2 dimensions"),
        ("nl.ndarray((128, 1 << 31), nl.int8)", "bad-shape", "at most 2,147,483,647 elements"),
        ("nl.ndarray((1,) * 9, nl.int8)", "bad-shape", "at most 8 dimensions, not 9"),
        ("nl.ndarray((128, 4), nl.int8, 'sbuf')", "bad-buffer", "does not take buffers by name"),
        ("nl.ndarray((2, nl.par_dim(128), 4), nl.int8)", "block-dimension", "dimension 1"),
        ("nl.ndarray((128, 4), nl.int8, address=(1, 0))", "bad-address", "go beyond the last one"),
        (
            "nl.ndarray((4, 4), nl.int8, nl.hbm, address=(1, 0))",
            "bad-address",
            "cannot be given an address",
        ),
        ("nl.arange(128)", "removed-name", "nki.language.arange"),
        ("nisa.tensor_copy_dynamic_src(tile)", "removed-name", "tensor_copy_dynamic_src"),
        ("nisa.tensor_cpoy(tile, tile)", "unknown-attribute", "tensor_cpoy"),
        ("nl.program_id(1)", "bad-grid-axis", "without a launch grid"),
        ("nl.range(nisa.register_alloc(1))", "register-value", "unrolled"),
        ("nl.range(2.5)", "loop-bounds", "2.5"),
        ("nl.device_print(3, tile)", "argument-kind", "print_prefix"),
        ("nl.fori_loop(0, 'x', print)", "loop-bounds", "'x'"),
        ("nisa.register_alloc(1) + 1", "register-value", "known only on the device"),
    ],
)
def test_one_line(line: str, slug: str, words: str) -> None:
    found = said(COPY.format(end=f"{line}\n    return out"))
    assert [d.code.slug for d in found] == [slug]
    assert words in found[0].message
    assert found[0].primary is not None


def test_operators_came_with_0_3() -> None:
    text = COPY.format(end="tile = tile * 2\n    return out")
    assert one(text, request("a=float32[4,4]", profile=Profile.BETA2)).code.slug == "needs-profile"
    assert len(program(text, request("a=float32[4,4]", profile=Profile.NKI_0_3)).cores[0]) == 3


def test_the_old_namespace() -> None:
    text = COPY.format(end="return out").replace("import nki.isa", "import neuronxcc.nki.isa")
    assert {found.code.slug for found in said(text)} == {"removed-name"}
    program(text, request("a=float32[4,4]", profile=Profile.NKI_0_3))


# Device loops

LOOP = (
    HEAD
    + """
@nki.jit
def kernel(a):
    tile = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    {loop}
"""
)


@pytest.mark.parametrize(
    ("loop", "profile"),
    [
        ("for i in nl.dynamic_range(2, 8, 2): nisa.dma_copy(dst=tile, src=a[i])", NKI_0_6),
        ("nl.fori_loop(2, 8, lambda i: nisa.dma_copy(dst=tile, src=a[i]) and None, 2)", DEFAULT),
    ],
)
def test_counted_loops(loop: str, profile: Profile) -> None:
    made = program(LOOP.format(loop=loop), request("a=float32[8,128,64]", profile=profile))
    (item,) = made.cores[0]
    assert isinstance(item, Loop)
    assert (item.start, item.stop, item.step, len(item.body)) == (2, 8, 2, 1)
    copy = item.body[0]
    assert isinstance(copy, Instruction)
    src = copy.operand("src")
    assert isinstance(src, View)
    assert src.dynamic == ("scalar", item.counter, 128 * 64, 8, 0)


def test_a_while_loop() -> None:
    loop = """flag = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    register = nisa.register_alloc(1)
    while register:
        nisa.memset(dst=flag, value=0)
        nisa.register_load(register, flag)"""
    wanted = request("a=float32[128,64]", profile=NKI_0_6)
    alloc, item = program(LOOP.format(loop=loop), wanted).cores[0]
    assert isinstance(alloc, Instruction)
    assert isinstance(item, Loop)
    assert item.condition == alloc.operands[0]
    assert [i.row.name for i in item.body if isinstance(i, Instruction)] == [
        "memset",
        "register_load",
    ]


def test_what_follows_from_a_refused_instruction_is_not_said() -> None:
    text = COPY.format(end="tile[...] = nisa.reciprocal(tile)\n    return out")
    assert one(text).code.slug == "wrong-call"
    text = COPY.format(end="tile[...] = nisa.reciprocal(tile, tile)\n    return out")
    assert "does not return a tensor" in one(text).message


def test_the_command_to_complete_names_the_file_as_printed() -> None:
    found = one(COPY.format(end="return out"), request())
    assert "nkic folder/k.py -k kernel" in found.relocated(lambda path: f"folder/{path}").help


# ------------------------------------------------------------------------------------------------
# Kernels that record without end are stopped after a number of steps that allows for real
# kernels.

ENDLESS_HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    tile = nl.ndarray(a.shape, a.dtype, nl.sbuf)
    {body}
    return a
"""
ENDLESS = {
    "while": "while True: nisa.memset(tile, 0.0)",
    "views": "while True: nisa.memset(tile[0:64, 0:8], 0.0)",
    "for": "for i in range(1000000): nisa.memset(tile, 0.0)",
    "tensors": "for i in range(1000000): nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)",
    "calls": "def f(n): return n and (f(n - 1), f(n - 1), nisa.memset(tile, 0.0))\n    f(100)",
    "registers": "for i in range(1000000): nisa.register_alloc(i)",
    "questions": "for i in range(40000): tile.get_pattern()",
    "views alone": "for i in range(1000000): tile.reshape((128, 8, 8))",
    "mistakes": "for i in range(1000000): nisa.memset(tile[0:200, 0:8], 0.0)",
    "the library": "for i in range(1000000): nl.add(tile, tile)",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_recording_without_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on steps allows this many instructions, tensors and views."""
    steps = 100_000
    monkeypatch.setattr("nkic.interpret.interpreter.DEFAULT_LIMITS", Limits(steps))
    text = ENDLESS_HEAD.format(body=ENDLESS[name])
    loader = Loader.beside("k.py")
    with pytest.raises(CompileFailed) as failed:
        source = loader.main("k.py", text.encode())
        made = Compiled(source)
        compile_source(
            source, Request(args=dict([parse_arg("a=float32[128,64]")])), loader, compiled=made
        )
    said = [one for one in failed.value.diagnostics if one.code.slug == "runaway"]
    assert [one.primary is not None for one in said] == [True]
    assert len(failed.value.diagnostics) <= 2
    assert made.results.keys() == {"parse", "resolve"}  # nothing is searched in such a program


def test_half_a_million_instructions_are_allowed() -> None:
    one = 1 + RECORDING + 2 * VIEWING
    assert 500_000 * one < Limits().steps < 1_000_000 * one
