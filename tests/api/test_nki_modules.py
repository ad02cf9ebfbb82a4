"""The modules installed as `nki`: their names, attributes, and when they are installed."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from nkic.language.enums import ENUMS
from nkic.machine import dtypes
from nkic.machine.instructions import ROWS
from nkic.nki import modules, stubs
from nkic.nki.names import OutsideKernel
from tests.harness import warm
from tests.unit.language.test_names import PUBLIC

PROJECT = Path(__file__).resolve().parents[2]
NL, NISA = modules.built("nki.language"), modules.built("nki.isa")


def python(code: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return warm.run_text(code, *words, cwd=PROJECT, env={**os.environ, **environ})


def nkic_runs(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m nkic` with these words."""
    code = "import runpy; runpy.run_module('nkic', run_name='__main__', alter_sys=True)"
    return python(code, *words, **environ)


def fresh(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python, which has imported nothing."""
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=PROJECT)


def test_every_public_name_of_the_language_is_there() -> None:
    names = {name for name in PUBLIC if "." not in name}
    assert sorted(names - set(vars(NL))) == []


def test_every_instruction_is_there_with_its_parameters() -> None:
    for row in ROWS.values():
        if row.module != "nki.isa" or row.until is not None:
            continue
        function = getattr(NISA, row.name)
        found = inspect.signature(function)
        assert tuple(found.parameters) == row.parameters
        lines = function.__doc__.splitlines()
        assert lines[0].startswith(f"{row.name}(") and lines[2] == row.doc
        assert row.engines[0].value in lines[4] and row.since.label in lines[4]
        assert repr(function) == f"nki.isa.{row.name}"


def test_the_cost_that_is_told_is_that_of_a_run(drop_in: ModuleType) -> None:
    x = np.zeros((128, 512), np.float32)
    timeline = drop_in.add.call(x, x).called.result.timeline
    (found,) = [one for one in timeline if one.name == "tensor_tensor"]
    told = f"trn2's vector is busy for {found.end_ns - found.start_ns:.0f} ns."
    assert told in NISA.tensor_tensor.__doc__


def test_functions_of_the_library_have_their_signatures() -> None:
    parameters = inspect.signature(NL.softmax).parameters
    assert list(parameters)[:2] == ["x", "axis"] and parameters["axis"].default == -1
    assert NL.softmax.__doc__


def test_required_and_optional_parameters() -> None:
    found = inspect.signature(NISA.tensor_copy).parameters
    assert found["dst"].default is inspect.Parameter.empty
    assert repr(found["engine"].default) == "engine.unknown"
    assert found["name"].default is None


def test_dtypes_are_their_names() -> None:
    for name in dtypes.DTYPES:
        assert getattr(NL, name) == name and type(getattr(NL, name)) is str
    assert NL.bool_ == "bool" and NL.DType is str
    assert np.zeros(2, NL.float16).dtype == np.float16


@pytest.mark.parametrize("name", sorted(ENUMS))
def test_enumerations_have_the_members_of_the_table(name: str) -> None:
    made: Any = getattr(NISA, name)
    assert [(m.name, m.value) for m in made] == [(m.name, m.value) for m in ENUMS[name]]
    assert (made.__module__, made.__qualname__) == ("nki.isa", name)
    assert modules.built("nki.isa.constants").__dict__[name] is made


def test_engines_by_their_former_names() -> None:
    assert NISA.vector_engine is NISA.engine.vector


def test_regions_of_memory() -> None:
    assert NL.is_hbm(NL.shared_hbm) and NL.is_hbm(NL.private_hbm) and not NL.is_hbm(NL.sbuf)
    assert NL.is_on_chip(NL.psum) and NL.is_psum(NL.psum) and not NL.is_sbuf(NL.psum)
    assert str(NL.sbuf) == "sbuf"


@pytest.mark.parametrize("name", ["tensor_copy", "nc_matmul", "VirtualRegister"])
def test_instructions_outside_a_kernel(name: str) -> None:
    with pytest.raises(OutsideKernel, match=rf"nki\.isa\.{name} works on tensors of a kernel"):
        getattr(NISA, name)(1, 2)


@pytest.mark.parametrize("name", ["add", "load", "ndarray", "NkiTensor", "program_id"])
def test_functions_outside_a_kernel(name: str) -> None:
    with pytest.raises(OutsideKernel, match=r"call it in a function under @nki\.jit"):
        getattr(NL, name)((128, 4))


def test_names_stand_in_annotations_and_survive_copies(drop_in: ModuleType) -> None:
    assert inspect.signature(drop_in.add.func).parameters["a"].annotation
    assert (drop_in.nl.add | None) is Any
    assert copy.deepcopy(drop_in.nl.add) is drop_in.nl.add
    assert pickle.loads(pickle.dumps(drop_in.nl.add)) is drop_in.nl.add
    engine = drop_in.nisa.engine.vector
    assert pickle.loads(pickle.dumps(engine)) is engine


def test_objects_of_kernels_get_their_fields() -> None:
    class Sizes(NL.NKIObject):  # type: ignore[misc, name-defined]
        rows: int
        columns: int = 4

    assert (Sizes(2).columns, Sizes(rows=1).rows) == (4, 1)
    assert Sizes(1) == Sizes(1) != Sizes(2)


# ---- when they are installed --------------------------------------------------------------------


def test_nothing_is_importable_without_an_act() -> None:
    found = python("import nkic, nkic.api, nkic.nki; import nki")
    assert found.returncode == 1 and "No module named 'nki'" in found.stderr


def test_install_makes_it_importable() -> None:
    lines = "import nkic; nkic.install(); import nki.isa as i, nki; print(nki.isa is i, nki.jit)"
    assert python(lines).stdout.startswith("True <function jit")
    names = ", ".join(name for name in modules.module_names())
    assert fresh("-c", f"import nkic; nkic.install(); import {names}").returncode == 0


def test_the_former_package_is_there_too() -> None:
    lines = (
        "import nkic; nkic.install(); import neuronxcc.nki.language as nl, neuronxcc.nki as nki;"
        "import nki.language; print(nl.float32 == nki.language.float32, nl.add, nl.arange)"
    )
    found = "True neuronxcc.nki.language.add neuronxcc.nki.language.arange\n"
    assert python(lines).stdout == found, python(lines).stderr


def test_frameworks_are_not_imported() -> None:
    lines = (
        "import nkic; nkic.install(); import sys, numpy as np, nki;"
        "from tests.api.drop_in import add; add(*[np.ones((128, 8), np.float32)] * 2);"
        "print(sorted({'torch', 'jax', 'pytest'} & set(sys.modules)))"
    )
    assert fresh("-c", lines).stdout == "[]\n"


def test_another_package_is_not_shadowed(tmp_path: Path) -> None:
    (tmp_path / "nki.py").write_text("other = 1\n")
    code = "import nkic; nkic.install({}); import nki; print(hasattr(nki, 'other'))"
    refused = python(code.format(""), PYTHONPATH=str(tmp_path))
    assert refused.returncode == 1 and "another package called nki is installed" in refused.stderr
    forced = python("import nki;" + code.format("force=True"), PYTHONPATH=str(tmp_path))
    assert forced.stdout == "False\n"


def test_install_and_uninstall_leave_no_trace() -> None:
    lines = (
        "import sys, nkic.nki as n; before = list(sys.meta_path); n.install(); n.install();"
        "print(n.installed(), len(sys.meta_path) - len(before)); import nki.isa; n.uninstall();"
        "print(sys.meta_path == before, 'nki' in sys.modules, n.installed())"
    )
    assert python(lines).stdout == "True 1\nTrue False False\n"


def test_an_imported_package_is_not_shadowed() -> None:
    lines = "import sys, types, nkic; sys.modules['nki'] = types.ModuleType('nki'); nkic.install()"
    assert "it is already imported" in python(lines).stderr


# ---- python -m nkic -----------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
import nki
import nki.language as nl

@nki.jit
def double(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.{buffer})
    nl.store(out, value=nl.add(nl.load(a), nl.load(a)))
    return out

if __name__ == "__main__":
    print(double(np.full((2, 3), 4, np.float32)).sum(), sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(buffer="shared_hbm"))
    return path


def test_a_script_runs_without_edit(script: Path) -> None:
    found = fresh("-m", "nkic", str(script), "--size", "3")
    assert (found.stdout, found.stderr) == ("48.0 ['--size', '3']\n", "")


def test_a_module_runs_without_edit(script: Path) -> None:
    found = nkic_runs("-m", "script", "x", PYTHONPATH=str(script.parent))
    assert found.stdout == "48.0 ['x']\n", found.stderr


def test_an_error_is_a_diagnostic_and_no_traceback(script: Path) -> None:
    script.write_text(SCRIPT.format(buffer="shared_hmb"))
    found = nkic_runs(str(script))
    assert found.returncode == 1 and "Traceback" not in found.stderr
    assert "error[NKI" in found.stderr and "shared_hmb" in found.stderr
    *_, types, place = found.stderr.splitlines()
    assert types == "compiled for a: float32[2,3]"
    line = len(SCRIPT.splitlines())
    assert place.startswith(f"called at {script}:{line}: print(double(np.full(")


@pytest.mark.parametrize(
    ("words", "says"),
    [([], "usage:"), (["--forc", "x.py"], "usage:"), (["nowhere.py"], "no file `nowhere.py`")],
)
def test_wrong_use(words: list[str], says: str) -> None:
    found = nkic_runs(*words)
    assert found.returncode == 2 and says in found.stderr


# ---- type stubs ---------------------------------------------------------------------------------


def test_modules_are_there_without_an_import_of_their_own() -> None:
    code = "import nkic; nkic.install(); import nki; print(nki.dtype.float32, nki.tensor)"
    assert python(code).stdout.startswith("float32 <module 'nki.tensor'")


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("nki.language", "arange", "was removed in NKI beta2; index with slices"),
        ("nki.compiler", "sbuf", "place a tensor with nl.ndarray"),
        ("nki.isa", "tensor_kopy", "has no attribute 'tensor_kopy'$"),
    ],
)
def test_names_that_went_say_what_to_use(module: str, name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=instead):
        getattr(modules.module(module), name)


TYPED = """
import nki
import nki.isa as nisa
import nki.language as nl
from nki.isa.constants import engine
from nki.typing import tensor

@nki.jit
def kernel(a: nl.NkiTensor, b: tensor[128, 4]) -> nl.NkiTensor:
    with nl.no_reorder():
        rows: int = a.permute((1, 0))[0:2, :].shape[0]
    t = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a, dge_mode=nisa.dge_mode.none)
    t.shap
    nisa.tensor_scalar(t, t, nl.add, 2.0, engine=engine.vector)
    return nl.softmax(t + t)

def computed(a: nl.NkiTensor) -> None:
    try:
        blocks = nl.blocks(a, tile_shape=(64, 2), block_shape=(1, 2))
        assert isinstance(blocks, nl.NkiBlockGrid)
        counts: list[int] = [blocks.shape[0], blocks.block_shape[0]]
        number = nisa.scalar_load(a)
        assert isinstance(number, nisa.NkiScalar)
        nisa.scalar_store(a, -(2 * number - 1))
        number / 2
    except nisa.NkiValidationError:
        raise

nisa.tensor_copy(1, sorce=2)
nisa.engine.vektor
"""


def test_stubs_are_what_type_checkers_need(tmp_path: Path) -> None:
    stubs.write(tmp_path / "stubs")
    (tmp_path / "use.py").write_text(TYPED)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--cache-dir",
        os.devnull,
        "--config-file",
        "",
        "use.py",
    ]
    environ = {**os.environ, "MYPYPATH": str(tmp_path / "stubs")}
    found = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    errors = [line.partition(" error: ")[2] for line in found.stdout.splitlines()[:-1]]
    assert [error for error in errors if error] == [
        '"NkiTensor" has no attribute "shap"; maybe "shape"?  [attr-defined]',
        'Unsupported operand types for / ("NkiScalar" and "int")  [operator]',
        'Unexpected keyword argument "sorce" for "tensor_copy"  [call-arg]',
        'Argument 1 to "tensor_copy" has incompatible type "int"; expected "NkiTensor"  [arg-type]',
        '"type[engine]" has no attribute "vektor"  [attr-defined]',
    ], found.stdout
