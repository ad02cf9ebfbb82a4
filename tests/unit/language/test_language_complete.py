"""Compare nkic's nki.language with the public one of NKI 0.6 and 0.7: names and parameters."""

from __future__ import annotations

import ast
import inspect
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nkic.base.profiles import Profile
from nkic.language import library
from nkic.language.binder import Binder
from nkic.language.provide import names, namespaces
from nkic.language.tensor import NkiTensor
from nkic.machine import dtypes
from nkic.machine.targets import Buffer

DATA = Path(__file__).resolve().parents[2] / "data" / "nki_language_0_6.txt"
_LINE = re.compile(r"(?P<name>[\w.]+)(?:\((?P<parameters>.*)\))?")

# Names that published kernels of 0.6 still use, in addition to the reference.
MORE = {
    "bool": "the dtype's own name",
    "par_dim": "marks the partition dimension, which is the first one anyway",
    "range": "another name of the range that is unrolled",
}
MORE_OF_TENSORS = {"base_tensor"}  # used only by published kernels


def published(path: Path = DATA) -> dict[str, list[str] | None]:
    """Return every public name; for functions the parameters with their defaults, None for
    values.
    """
    found: dict[str, list[str] | None] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        assert match is not None, line
        text = match["parameters"]
        found[match["name"]] = None if text is None else [p for p in text.split(", ") if p]
    return found


PUBLIC = published()
ADDED = published(DATA.with_name("nki_language_0_7.txt"))
OURS = {**names(Profile.NKI_0_6, library.public()), "NKIObject": object}
FUNCTIONS = [n for n, parameters in PUBLIC.items() if parameters is not None and "." not in n]
METHODS = [n for n, parameters in PUBLIC.items() if parameters is not None and "." in n]


def definitions() -> dict[str, ast.FunctionDef]:
    """Return the functions of the standard library."""
    files = {file.path: file for file in library.sources().values()}
    trees = [ast.parse(file.text) for file in files.values()]
    return {n.name: n for tree in trees for n in tree.body if isinstance(n, ast.FunctionDef)}


DEFINED = definitions()


def parameters_of(name: str) -> list[str]:
    """Return a function's parameters in nkic."""
    if name in DEFINED:
        return [word.strip() for word in ast.unparse(DEFINED[name].args).split(", ")]
    value: Any = OURS[name]
    if isinstance(value, Binder):
        return list(value._row.parameters)
    if name == "ndarray":  # a class that can be called like a function
        value = partial(type(value).__call__, value)
    return [_word(p.name, p.default) for p in inspect.signature(value).parameters.values()]


def _word(name: str, default: Any) -> str:
    return name if default is inspect.Parameter.empty else f"{name}={default!r}"


def spelled(words: list[str]) -> list[str]:
    """Return parameters in a normalised spelling."""
    text = "\n".join(words).replace("nl.", "").replace('"', "'")
    text = re.sub(r"<?Buffer\.(\w+)(: [^>]*>)?", lambda m: m[1].lower(), text)
    return text.replace("DType(float32)", "float32").split("\n") if words else []


def test_every_public_name_is_there_and_no_other() -> None:
    public = {name for name in PUBLIC if "." not in name}
    assert sorted(public - set(OURS)) == []
    assert sorted(set(OURS) - public) == sorted(MORE)


def test_no_name_is_said_to_be_missing() -> None:
    space = namespaces(Profile.NKI_0_6, lambda file, name: lambda: None)["nki.language"]
    assert not set(PUBLIC) & set(space.__dict__["@absent"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters(name: str) -> None:
    assert spelled(parameters_of(name)) == spelled(PUBLIC[name] or [])


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_tensors(name: str) -> None:
    method = getattr(NkiTensor, name.removeprefix("NkiTensor."))
    own = [_word(p.name, p.default) for p in list(inspect.signature(method).parameters.values())]
    assert own[1:] == PUBLIC[name]


def test_members() -> None:
    for name in PUBLIC:
        owner, _, member = name.rpartition(".")
        if owner == "NkiTensor":
            assert hasattr(NkiTensor, member), name
        elif owner:
            assert member in dir(OURS[owner]), name


def test_tensors_have_no_further_public_attributes() -> None:
    public = {name.removeprefix("NkiTensor.") for name in PUBLIC}
    own = {name for name in vars(NkiTensor) if not name.startswith("_")}
    assert own - public == MORE_OF_TENSORS | {"data"}


def test_what_0_7_adds() -> None:
    ours = names(Profile.NKI_0_7, library.public())
    assert {*ours} - {*OURS} == {name for name in ADDED if "." not in name}
    assert {*OURS} - {*ours} == {"NKIObject"}  # which depends on the evaluator
    for name in ADDED:
        owner, _, member = name.rpartition(".")
        assert not owner or member in dir(NkiTensor if owner == "NkiTensor" else ours[owner])
    for name in ("NkiGrid", "NkiTileGrid", "NkiBlockGrid"):
        public = {n.removeprefix(f"{name}.") for n in ADDED if n.startswith(f"{name}.")}
        assert {n for n in dir(ours[name]) if not n.startswith("_")} == public


@pytest.mark.parametrize("name", [n for n, found in ADDED.items() if found is not None])
def test_parameters_of_0_7(name: str) -> None:
    function = names(Profile.NKI_0_7, ())[name]
    found = [_word(p.name, p.default) for p in inspect.signature(function).parameters.values()]
    assert found == ADDED[name]


def test_dtypes_and_buffers_are_what_they_are_called() -> None:
    newest = names(Profile.NKI_0_7, library.public())
    for name, dtype in dtypes.DTYPES.items():
        assert newest[name] is dtype
    assert {*dtypes.DTYPES} - {*OURS} == {"int64"}  # added in NKI 0.7
    assert OURS["hbm"] is OURS["private_hbm"] is OURS["MemoryRegion"].private_hbm is Buffer.HBM


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_no_parameter_is_ignored(name: str) -> None:
    """The body reads each parameter. `keepdims` of var is documented as without effect."""
    function = DEFINED[name]
    read = {n.id for body in function.body for n in ast.walk(body) if isinstance(n, ast.Name)}
    given = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    assert given - read == ({"keepdims"} if name == "var" else set())
