"""Test calls of instructions: recorded instructions, and errors about calls that do not fit."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nkic.base import profiles
from nkic.base.device import KernelError
from nkic.base.diagnostics import Reporter
from nkic.base.profiles import Profile
from nkic.language import isa
from nkic.language import provide as language
from nkic.language.binder import Binder
from nkic.language.trace import Trace, tracing
from nkic.machine import targets
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Register
from nkic.machine.targets import Engine
from nkic.program.program import Instruction, Loop, View


class Names:
    def __init__(self, names: dict[str, Any]) -> None:
        self.__dict__.update(names)


@pytest.fixture
def trace() -> Iterator[Trace]:
    with tracing(Trace(targets.DEFAULT, Profile.NKI_0_6, Reporter())) as made:
        made.begin(())
        yield made


nl: Any = Names(language.names(Profile.NKI_0_6, ()))
nisa: Any = Names(isa.names(Profile.NKI_0_6))


def tile(*shape: int, **more: Any) -> Any:
    return nl.ndarray(shape or (128, 64), dtype=nl.float32, **more)


def only(trace: Trace) -> Instruction:
    assert trace.report.all == ()
    (item,) = trace.body
    assert isinstance(item, Instruction)
    return item


def test_an_instruction_as_recorded(trace: Trace) -> None:
    a, b = tile(), tile()
    nisa.tensor_scalar(b[:, 0:32], a[:, 0:32], nl.add, 2.0, op1=nl.multiply, operand1=3, name="x")
    found = only(trace)
    assert found.row is ROWS["tensor_scalar"]
    dst, data, first, second = found.operands
    assert isinstance(dst, View)
    assert isinstance(data, View)
    assert (dst.tensor.number, dst.shape, data.tensor.number) == (1, (128, 32), 0)
    assert (first, second) == (2.0, 3)
    assert found.attributes == ("add", False, "multiply", False)
    assert (found.engine, found.name, found.number, found.after) == (None, "x", 0, ())
    assert (trace.read, trace.written) == ({0}, {1})


def test_values_of_attributes(trace: Trace) -> None:
    a = tile()
    nisa.iota(a, [[1, 64]], channel_multiplier=64)
    nisa.activation(a, nl.exp, a, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.tensor_reduce(dst=a[:, 0:1], op=nl.maximum, data=a, axis=1)
    nisa.tensor_copy(a, a, engine=nisa.engine.scalar)
    nisa.dma_copy(a, a, engine=nisa.engine.sync, dge_mode=nisa.dge_mode.hwdge)
    found = [item for item in trace.body if isinstance(item, Instruction)]
    assert trace.report.all == ()
    assert found[0].attribute("pattern") == ((1, 64),)
    assert found[1].attribute("reduce_op") == "add"
    assert found[1].attribute("reduce_cmd") == "reset_reduce"
    assert found[2].attribute("axis") == (1,)
    assert found[3].engine is Engine.SCALAR
    assert (found[4].engine, found[4].attribute("engine")) == (None, "sync")
    assert found[4].attribute("dge_mode") == "hwdge"


def test_every_row_binds_its_own_parameters(trace: Trace) -> None:
    """Called without arguments, each instruction names exactly the parameters that its row
    requires.
    """
    for row in ROWS.values():
        binder = Binder(row)
        required = {o.name for o in row.operands if o.required and o.name != row.returns}
        required |= {a.name for a in row.attributes if a.required}
        required |= {row.spread} if row.spread else set()
        if not required:
            continue
        trace.report = Reporter()
        binder()
        (found,) = trace.report.errors
        listed = ", ".join(f"`{name}`" for name in row.parameters if name in required)
        missing = f"{row.name}: {listed} {'is' if ',' not in listed else 'are'} missing"
        assert found.message.startswith(missing)


Call = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("call", "slug", "said", "advice"),
    [
        (
            lambda t: nisa.tensor_copy(t),
            "wrong-call",
            "`src` is missing",
            "does not return a tensor",
        ),
        (
            lambda t: nisa.reciprocal(data=t),
            "wrong-call",
            "`dst` is missing",
            "does not return a tensor",
        ),
        (lambda t: nisa.tensor_copy(), "wrong-call", "are missing", "(dst, src, engine=…"),
        (lambda t: nisa.tensor_copy(t, srcs=t), "wrong-call", "parameter `srcs`", "`src`?"),
        (lambda t: nisa.max8(t, t, "n", 4), "wrong-call", "takes 3 arguments, not 4", "max8(dst,"),
        (lambda t: nisa.tensor_copy(t, t, dst=t), "wrong-call", "two values for `dst`", ""),
        (lambda t: nisa.tensor_copy(t, t, mask=1), "removed-name", "`mask` since", "affine_select"),
        (
            lambda t: nisa.dma_copy(t, t, dst_rmw_op=nl.add),
            "removed-name",
            "dst_rmw",
            "dma_compute",
        ),
        (lambda t: nisa.tensor_copy(t, 3j), "argument-kind", "`src` is a complex", ""),
        (lambda t: nisa.tensor_copy(t, True), "argument-kind", "`src` is True", ""),
        (
            lambda t: nisa.tensor_copy(t, nisa.tensor_copy(t, t)),
            "argument-kind",
            "",
            "pass the dst",
        ),
        (lambda t: nisa.tensor_tensor(t, t, t, "add"), "argument-kind", "`op` is 'add'", "nl.add"),
        (lambda t: nisa.tensor_tensor(t, t, t, max), "argument-kind", "`op` is a builtin", ""),
        (lambda t: nisa.activation(t, "exp", t), "argument-kind", "`op` is 'exp'", "nl.exp"),
        (
            lambda t: nisa.tensor_copy(t, t, engine=5),
            "argument-kind",
            "`engine` is 5",
            "nisa.engine",
        ),
        (lambda t: nisa.tensor_copy(t, t, name=5), "argument-kind", "`name` is 5", ""),
        (lambda t: nisa.dma_copy(t, t, oob_mode=7), "argument-kind", "oob_mode", "nisa.oob_mode"),
        (lambda t: nisa.iota(t, [[1, {}]]), "argument-kind", "`pattern` is a dict", ""),
        (
            lambda t: nisa.dma_compute(t, t, nl.add),
            "argument-kind",
            "`srcs` is the tensor",
            "list of 1 to 16 tiles",
        ),
        (
            lambda t: nisa.dma_compute(t, [t] * 17, nl.add),
            "argument-kind",
            "`srcs` has 17 elements, but must have 1 to 16",
            "list of 1 to 16 tiles",
        ),
        (lambda t: nisa.dma_compute(t, [], nl.add), "argument-kind", "`srcs` has 0 elements", ""),
        (lambda t: nisa.dma_compute(t, [t, "x"], nl.add), "argument-kind", "`src1` is 'x'", ""),
        (lambda t: nisa.dma_compute(t, src0=t), "wrong-call", "no parameter `src0`", "`srcs`"),
        (
            lambda t: nisa.tensor_tensor(t, data1=t, data=t, op=nl.add),
            "wrong-call",
            "no parameter `data`",
            "`data2`",
        ),
        (lambda t: nisa.memset(t, "x"), "argument-kind", "`value` is 'x'", ""),
        (
            lambda t: nisa.tensor_reduce(t, nl.add, t, axis="x"),
            "argument-kind",
            "`axis` is 'x'",
            "",
        ),
    ],
)
def test_calls_that_do_not_fit(trace: Trace, call: Call, slug: str, said: str, advice: str) -> None:
    t = tile()
    call(t)
    found = trace.report.errors[-1]
    assert found.code.slug == slug
    assert said in found.message
    assert advice in found.help
    kept = [i.row.name for i in trace.body if isinstance(i, Instruction)]
    assert kept in ([], ["tensor_copy"]), "the wrong call itself is not recorded"


def test_a_list_of_tiles_becomes_operands(trace: Trace) -> None:
    dst, one, two = tile(), tile(), tile()
    nisa.dma_compute(dst, (one, two[:, :]), nl.add, scales=[1.0, 1])
    found = only(trace)
    numbers = [o.tensor.number for o in found.operands if isinstance(o, View)]
    assert numbers == [t._access.tensor.number for t in (dst, one, two)]
    assert found.operands[3:] == (None,) * 14
    assert found.attributes == ("add", (1.0, 1), True, "error")


@pytest.mark.parametrize(("profile", "slugs"), [("beta2", []), ("0.3", ["number-for-enum"])])
def test_numbers_stand_for_enumerations(profile: str, slugs: list[str]) -> None:
    version = profiles.find(profile)
    assert version is not None
    with tracing(Trace(targets.DEFAULT, version, Reporter())) as trace:
        trace.begin(())
        nisa.dma_copy(tile(), tile(), dge_mode=2)
    assert [d.code.slug for d in trace.report.all] == slugs
    assert trace.report.errors == ()
    (item,) = trace.body
    assert isinstance(item, Instruction)
    assert item.attribute("dge_mode") == "hwdge"


def test_parameters_to_come_are_refused_by_profile() -> None:
    """Release notes of NKI 0.3.0: nc_matmul's `accumulate`."""
    for version, slugs in ((Profile.BETA2, ["wrong-call"]), (Profile.NKI_0_3, [])):
        nisa = isa.names(version)
        with tracing(Trace(targets.DEFAULT, version, Reporter())) as trace:
            trace.begin(())
            nisa["nc_matmul"](dst=tile(), stationary=tile(), moving=tile(), accumulate=True)
        assert [d.code.slug for d in trace.report.all] == slugs
        assert slugs == [] or "before NKI 0.3" in trace.report.all[0].message


# Follow-up errors: one mistake gives one error


def test_a_wrong_view_gives_one_error_and_the_kernel_goes_on(trace: Trace) -> None:
    t = tile()
    wrong = t[:, 48:80]
    assert wrong.shape == (128, 32)
    nisa.tensor_copy(dst=wrong, src=t[:, 0:32])
    nisa.tensor_copy(dst=t[:, 0:32], src=wrong[:, 0:99])
    assert [e.code.slug for e in trace.report.errors] == ["index-out-of-bounds"]
    assert trace.body == []


def test_too_many_partitions_is_reported_once(trace: Trace) -> None:
    nisa.memset(dst=tile(256, 4)[0:200, :], value=0.0)
    (found,) = trace.report.errors
    assert found.code.slug == "too-many-partitions"
    assert "128" in found.message and "256" in found.message
    assert trace.tensors == []


# Order, registers, loops


def test_depends_on_and_no_reorder(trace: Trace) -> None:
    t = tile()
    first = nisa.memset(t, 0.0)
    with nl.no_reorder():
        second = nisa.memset(t, 1.0)
        with nl.no_reorder():
            nisa.memset(t, 2.0)
    with nl.no_reorder():
        nisa.memset(t, 3.0).depends_on(first, second)
    found = [item for item in trace.body if isinstance(item, Instruction)]
    assert [i.pinned for i in found] == [0, 1, 1, 2]
    assert found[3].after == (0, 1)


def test_registers(trace: Trace) -> None:
    t = tile(1, 1)
    register = nisa.register_alloc(5)
    nisa.register_load(register, t)
    alloc, load = (item for item in trace.body if isinstance(item, Instruction))
    assert alloc.operands == (Register(0), 5)
    assert load.operands[0] == Register(0)
    for call in (lambda: register + 1, lambda: bool(register), lambda: range(register)):
        with pytest.raises(KernelError, match="known only on the device"):
            call()


def test_a_loop_on_the_device(trace: Trace) -> None:
    t, h = tile(), tile(4, 128, 64, buffer=nl.shared_hbm)

    def body(i: Any) -> None:
        inner = tile()
        nisa.dma_copy(inner, h[i])
        nisa.tensor_copy(t, inner)

    nl.fori_loop(0, 4, body)
    nisa.memset(t, 0.0)
    loop, after = trace.body
    assert isinstance(loop, Loop)
    assert isinstance(after, Instruction)
    assert (loop.counter, loop.start, loop.stop, loop.step) == (Register(0), 0, 4, 1)
    assert [i.number for i in loop.body if isinstance(i, Instruction)] == [0, 1]
    assert after.number == 2
    assert trace.tensors[2].scope == (loop.number,)


def test_what_a_loop_leaves_behind(trace: Trace) -> None:
    kept = []
    nl.fori_loop(0, 2, lambda i: kept.append(tile()))
    nisa.memset(kept[0], 0.0)
    assert [e.code.slug for e in trace.report.errors] == ["tensor-out-of-scope"]
    with pytest.raises(KernelError) as caught:
        nl.fori_loop(0, 2, lambda i: 3)
    assert caught.value.slug == "loop-result"
    with nl.no_reorder(), pytest.raises(KernelError) as caught:
        nl.fori_loop(0, 2, print)
    assert caught.value.slug == "loop-in-no-reorder"


def test_the_counter_cannot_be_written(trace: Trace) -> None:
    nl.fori_loop(0, 2, lambda i: nisa.register_move(i, 3) and None)
    (found,) = trace.report.errors
    assert found.code.slug == "register-value"


def test_a_wrong_index_tensor_gives_one_error_too(trace: Trace) -> None:
    table = tile(64, 128, buffer=nl.shared_hbm)
    index = nl.ndarray((128, 1), dtype=nl.int32)[0:200, :]
    nisa.dma_copy(tile(128, 128), table.vector_select(0, index))
    nisa.dma_copy(tile(1, 128), table.select(0, index[0:1, :]))
    assert [e.code.slug for e in trace.report.errors] == ["index-out-of-bounds"]
    assert trace.body == []


def test_depends_on_takes_instructions(trace: Trace) -> None:
    with pytest.raises(KernelError, match="not 5"):
        nisa.memset(tile(), 0.0).depends_on(5)
