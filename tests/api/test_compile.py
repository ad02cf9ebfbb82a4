"""`compile`, `run` and artifacts."""

from __future__ import annotations

import inspect
import subprocess
import sys
import traceback
import warnings
from collections import UserDict
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import nkic
from nkic import api, judge
from nkic import nki as nkic_nki
from nkic.base.diagnostics import NkicError
from nkic.base.source import SourceFile
from nkic.judge import tuning
from tests.api import kernels as k

X = np.arange(128 * 4, dtype=np.float32).reshape(128, 4)
FILE = Path(k.__file__)


def test_a_file_gives_what_the_command_gives(tmp_path: Path) -> None:
    options = ["-k", "scaled", "--arg", "x=f32[128,4]", "--const", "factor=2.0"]
    out = tmp_path / "k.neff"
    words = [sys.executable, "-m", "nkic.cli.nkic", FILE, *options, "-o", out]
    subprocess.run([str(word) for word in words], check=True)
    made = nkic.compile(FILE, name="scaled", inputs={"x": "f32[128,4]"}, consts={"factor": 2.0})
    assert made.data == out.read_bytes()


@pytest.mark.parametrize("form", ["ir", "sched", "asm"])
def test_a_printed_program_gives_the_file_of_its_kernel(form: str, tmp_path: Path) -> None:
    path, kernel = tmp_path / f"k.{form}", tmp_path / "kernels.py"
    kernel.write_bytes(FILE.read_bytes())  # beside the program, which has the lines of its file
    words = ["nkic.cli.nkic", str(kernel), "-k", "scaled", "--arg", "x=f32[128,4]"]
    subprocess.run([sys.executable, "-m", *words, "--emit", f"{form}={path}"], check=True)
    made = nkic.compile(path)
    own = nkic.compile(kernel, name="scaled", inputs={"x": "f32[128,4]"})
    assert made.data == own.data and made.returned == own.returned
    with pytest.raises(nkic.CompileError, match="already has its kernel, target and arguments"):
        nkic.compile(path, inputs={"x": X})
    if form == "ir":
        assert nkic.compile(path, optimise=0).executable.meta["level"] == "0"
    else:
        options: list[dict[str, Any]] = [{"optimise": 0}, {"serial": True}, {"spill": True}]
        for option in [*options, {"machine": {"contention": "all"}}]:
            with pytest.raises(nkic.CompileError, match="is not scheduled again"):
                nkic.compile(path, **option)


def test_a_text_and_a_function() -> None:
    source = SourceFile("kernels.py", FILE.read_text("utf-8"))
    text = nkic.compile(source, name="scaled", inputs={"x": X})
    function = nkic.compile(k.scaled, inputs={"x": X})
    for artifact in (text, function):
        result = nkic.run(artifact, {"x": X})
        np.testing.assert_array_equal(result.outputs["output_0"], X)


def test_save_and_load(tmp_path: Path) -> None:
    made = nkic.compile(k.scaled, inputs={"x": "bf16[128, 4]"}, consts={"factor": 2})
    path = made.save(tmp_path / "k.neff")
    again = nkic.Artifact.load(path)
    assert (again.data, again.returned, again.id) == (made.data, made.returned, made.id)
    assert "tensor_scalar" in again.text
    assert [str(p) for p in again.signature.outputs] == ["bfloat16[128, 4]"]
    path.write_bytes(b"no artifact")
    with pytest.raises(nkic.RunError, match="NKI0801"):
        nkic.Artifact.load(path)


def test_a_result_shows_itself() -> None:
    result = nkic.run(nkic.compile(k.scaled, inputs={"x": X}), fill="ones")
    assert result.cycles > 0
    assert "scaled: " in result.report
    assert f'"cycles": {result.cycles}' in result.json
    assert "<table>" in result._repr_html_()


def test_orders_of_addition_and_error_bounds() -> None:
    x = np.ones((128, 2), np.float32)
    x[0], x[127] = 2.0**30, -(2.0**30)
    y = np.ones((128, 2), np.float32)
    made = nkic.compile(k.product, inputs={"x": x, "y": y})
    plain = nkic.run(made, {"x": x, "y": y})
    other = nkic.run(made, {"x": x, "y": y}, accumulate="float32", report_error_bound=True)
    assert plain.outputs["output_0"][0, 0] == 126
    assert other.outputs["output_0"][0, 0] == 0
    assert plain.error_bounds is None
    assert other.error_bounds is not None
    assert 126 < other.error_bounds["output_0"][0, 0] < np.inf
    assert "off by at most" in other.report
    assert "off by at most" not in plain.report
    with pytest.raises(nkic.RunError, match="did you mean `pairwise`"):
        nkic.run(made, {"x": x, "y": y}, accumulate="pairwize")


def test_errors_of_the_call() -> None:
    with pytest.raises(nkic.CompileError, match=r"cannot read `nowhere\.py`"):
        nkic.compile("nowhere.py")
    with pytest.raises(nkic.CompileError, match="there is no target `trn9`"):
        nkic.compile(k.scaled, inputs={"x": X}, target="trn9")
    with pytest.raises(nkic.CompileError, match="no type for `x`"):
        nkic.compile(k.scaled)
    with pytest.raises(nkic.CompileError, match="input `x` is a float"):
        nkic.compile(k.scaled, inputs={"x": 3.0})


def test_the_import_is_light() -> None:
    code = "import sys, nkic; print('numpy' in sys.modules, nkic.__version__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"False {nkic.__version__}\n"


def test_the_names_of_the_package() -> None:
    assert [name for name in dir(nkic) if not name.startswith("__")] == sorted(nkic.__all__)
    for name in nkic.__all__:
        room = {"install": nkic_nki, "evaluate": judge, "tune": tuning}.get(name, api)
        assert getattr(nkic, name) is getattr(room, name)


# ---- values that are rejected ----

untyped: Any = api  # the calls below pass values of wrong types


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: untyped.call(k.scaled, X), r"args is .*\n.*\(a,\) for one"),
        (lambda: untyped.call(k.scaled, (X,), ["a"]), r"kwargs is \['a'\], but must be a mapping"),
        (
            lambda: untyped.call(k.scaled, (X,), lnc="2"),
            "lnc is '2', but must be an int of at least 1",
        ),
        (
            lambda: untyped.call(k.scaled, (X,), grid=(2, 0)),
            r"grid is \(2, 0\), but must be an int of",
        ),
        (
            lambda: untyped.call(k.scaled, (X,), grid=2**21),
            "2,097,152 instances; the limit is 1,048,5",
        ),
        (lambda: untyped.call(k.scaled, (X,), spread="x"), "spread is 'x', but must be a Spread"),
        (lambda: untyped.call(k.scaled, (X,), optimise=3), "`optimise` is 3; it must be 0, 1 or 2"),
        (
            lambda: untyped.call(k.scaled, (X,), timeout=0),
            "timeout is 0, but must be a number of sec",
        ),
        (lambda: untyped.call(k.scaled, (X,), levels="error"), "levels is 'error', but must be"),
        (lambda: untyped.call(k.scaled, (X,), spill="yes"), "spill is 'yes', but must be True"),
        (
            lambda: untyped.call(k.scaled, (X,), evaluate="closed", limits={"step": 9}),
            "no limit of the evaluation is called 'step'.*\n.*`steps`",
        ),
        (
            lambda: untyped.call(k.scaled, (X,), evaluate="closed", limits={"core": 9}),
            "no limit of the evaluation is called 'core'.*\n.*limits are memory, steps, length",
        ),
        (
            lambda: untyped.call(k.scaled, (X,), evaluate="closed", limits={"depth": 9000}),
            "depth is 9,000; it must be at most 900",
        ),
        (
            lambda: untyped.call(k.scaled, (X,), limits={"steps": 0}),
            "limits is {'steps': 0}, but must be a mapping",
        ),
        (lambda: untyped.call_ranks(k.scaled, []), "no arguments of ranks"),
        (
            lambda: untyped.call_ranks(k.scaled, [X, X]),
            r"inputs is a list, but must be a sequence \(each item a sequence of arguments or a",
        ),
        (lambda: untyped.compile(k.scaled, max_errors=0), "max_errors is 0, but must be an int"),
        (lambda: untyped.compile(k.scaled, optimise=3), "`optimise` is 3; it must be 0, 1 or 2"),
        (lambda: untyped.compile(k.scaled, inputs=3), "inputs is 3, but must be a mapping"),
    ],
)
def test_arguments_that_cannot_be_honoured(call: Callable[[], object], message: str) -> None:
    with pytest.raises(api.CompileError, match=message):
        call()


class Silent:
    """A value without a text."""

    def __repr__(self) -> str:
        raise ValueError


WRONG: tuple[Any, ...] = (
    *(None, True, -1, 1.5, float("nan"), 1 << 70, "nope", "\0", "\ud800", "a" * 300, b"x"),
    *([], (), {}, [1, 2], [None], [[]], {"a": 1}, {1: 2}, X, X[0], X[:0], np.array(["x"])),
    *(object(), Silent(), type, int, lambda: 0, api.Artifact(b"x")),
)
# Of these, many values are right, or what they do is not undone.
SKIPPED = {("install", "force"), ("fuzz_order", "orders"), ("tune", "told")}


def public() -> dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Return a right call of each public function: itself and its arguments."""
    artifact = api.compile(k.scaled, inputs={"x": X})
    result, x = api.run(artifact, {"x": X}), {"x": X}
    return {
        "compile": (nkic.compile, (k.scaled,), {"inputs": x}),
        "prepare": (nkic.prepare, (k.scaled, (X,)), {}),
        "call": (nkic.call, (k.scaled, (X,)), {}),
        "call_ranks": (nkic.call_ranks, (k.scaled, [(X,)]), {}),
        "run": (nkic.run, (artifact, x), {}),
        "run_ranks": (nkic.run_ranks, (artifact, [x]), {}),
        "fuzz_order": (nkic.fuzz_order, (artifact, x), {"orders": 1}),
        "batch_invariant": (nkic.batch_invariant, (artifact, artifact), {}),
        "equal": (nkic.equal, (artifact, artifact), {}),
        "rank": (nkic.rank, ([result],), {}),
        "install": (nkic.install, (), {}),
        "evaluate": (nkic.evaluate, ("k.py", "task.toml"), {}),
        "tune": (nkic.tune, ("k.py", "task.toml"), {}),
        "Artifact.load": (nkic.Artifact.load, ("k.neff",), {}),
        "Artifact.save": (artifact.save, ("k.neff",), {}),
        "Artifact.sign": (artifact.sign, ("key.pem",), {}),
    }


def test_every_public_function_is_in_the_table() -> None:
    functions = {name for name in nkic.__all__ if not isinstance(getattr(nkic, name), type)}
    assert functions == {name for name in public() if "." not in name}


def options_of(function: Any) -> list[str]:
    hints = get_type_hints(inspect.unwrap(function)).get("call_options")
    return [*get_args(hints)[0].__annotations__] if hints else []


@pytest.mark.parametrize("name", public())
def test_what_a_public_function_does_not_take(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    function, args, named = public()[name]
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
    given = dict(zip(names, args, strict=False)) | named

    def refused(*args: Any, **named: Any) -> str:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*args, **named)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            assert frames[-1].filename in (__file__, k.__file__), (args, named)
            assert isinstance(error, api.ApiError | NkicError | TypeError), error
            return str(error)
        return ""

    assert "'nope'" in refused(**given, nope=1) or name == "evaluate"
    assert "positional argument" in refused(*args, *range(20), **named)
    if args and name not in ("Artifact.save", "Artifact.sign"):
        assert f"'{names[0]}'" in refused()
    for parameter in [*names, *options_of(function)]:
        if (name, parameter) not in SKIPPED:
            for value in WRONG:
                refused(**{**given, parameter: value})
            assert parameter in refused(**{**given, parameter: Silent()})


def test_no_name_of_a_parameter_is_an_option() -> None:
    for function, args in ((untyped.call, (k.scaled, (X,))), (untyped.compile, (k.scaled,))):
        with pytest.raises(TypeError, match="has no option 'call_options'"):
            function(*args, call_options={"lnc": 2})


class Counted(UserDict[str, Any]):
    """Arrays by name, each of which is work to read, and may fail."""

    read = 0

    def __getitem__(self, key: str) -> Any:
        self.read += 1
        if key not in self.data:
            raise OSError("the disk failed")
        return self.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(["x"])


def test_arrays_are_read_once_and_their_own_errors_stay() -> None:
    artifact = api.compile(k.scaled, inputs={"x": X})
    arrays = Counted(x=X)
    api.run(artifact, arrays)
    assert arrays.read == 1
    with pytest.raises(OSError, match="the disk failed"):
        api.run(artifact, Counted())


def test_values_of_other_types_that_mean_the_same() -> None:
    artifact = api.compile(k.scaled, inputs={"x": X})
    assert untyped.call(k.scaled, (X,), grid=np.int32(2)).artifact.data
    api.fuzz_order(artifact, {"x": X}, orders=1, seed=-1, dump=None)
    result = api.run(artifact, {"x": X})
    assert " 128 " in str(api.rank({128: result}))
    for runs in ((result for _ in range(2)), {"a": result}.values(), (result,)):
        assert api.rank(runs).rows
    for wrong in ([5], {"a": 5}, "ab", {"a": result}.items()):
        with pytest.raises(api.RunError, match=r"rank\(\): (run 0|a) is a \w+, not a result"):
            untyped.rank(wrong)
    untyped.run(artifact, {"x": X}, timeout=Decimal(60))


def test_the_evaluation_of_a_call_has_limits() -> None:
    def call(**limits: int) -> api.Called:
        return api.call(k.scaled, (X, 2.0), evaluate="closed", limits=limits)

    assert (call(steps=1_000_000).values == call().values).all()
    with pytest.raises(api.CompileError, match=r"(?s)within 100 steps.*\n.*limits=\{'steps': N\}"):
        call(steps=100)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: untyped.run(a.data), "artifact is a bytes, but must be an Artifact"),
        (
            lambda a: untyped.run(a, [X]),
            "inputs is .*, but must be a mapping of arrays by name",
        ),
        (lambda a: untyped.run(a, {"x": X}, fill=3), "fill is 3, but must be a text"),
        (
            lambda a: untyped.run(a, {"x": X}, max_cycles="9"),
            "max_cycles is '9', but must be an int",
        ),
        (
            lambda a: untyped.run(a, {"x": X}, rtol=-1),
            "rtol is -1, but must be a number of at least 0",
        ),
        (
            lambda a: untyped.run(a, {"x": X}, limits={"steps": 9}),
            "no limit of a run is called 'steps.*\n.*'memory' here, max_cycles= and timeout=",
        ),
        (lambda a: untyped.run(a, {"x": X}, limits={"memory": 9}), "memory` is 9 B"),
        (lambda a: untyped.fuzz_order(a, {"x": X}, max_memory=9), "memory` is 9 B"),
        (lambda a: untyped.run_ranks(a, []), "no inputs of ranks"),
        (lambda a: untyped.run_ranks(a, {"x": X}), "inputs is .*, but must be a sequence"),
        (
            lambda a: untyped.fuzz_order(a, {"x": X}, orders=0),
            "orders is 0, but must be an int of at",
        ),
    ],
)
def test_runs_that_cannot_be_honoured(call: Callable[[api.Artifact], object], message: str) -> None:
    artifact = api.prepare(k.scaled, (X,)).artifact
    with pytest.raises(api.RunError, match=message):
        call(artifact)


@pytest.mark.parametrize(
    ("inputs", "message", "advice"),
    [
        ({}, "`x`: missing", "pass an array as `x`, or fill missing inputs with fill='zeros'"),
        ({"x": X[:, :2]}, "float32[128, 2] in the call", "compile for the shapes of the data"),
        (
            {"x": X.astype(np.float16)},
            "float16[128, 4] in the call",
            "cast=True converts it to float32 and reports the rounding error",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_explained_in_python(
    inputs: dict[str, Any], message: str, advice: str
) -> None:
    artifact = api.prepare(k.scaled, (X,)).artifact
    with pytest.raises(api.RunError) as raised:
        api.run(artifact, inputs)
    (diagnostic,) = raised.value.diagnostics
    assert message in diagnostic.message
    assert diagnostic.help == advice
