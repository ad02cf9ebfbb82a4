"""Test the version of a file that imports both packages of NKI."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkic.base.diagnostics import InputFailed, UsageFailed
from nkic.base.profiles import DEFAULT, Profile
from nkic.base.source import SourceFile
from nkic.compiler.like import read_like
from nkic.compiler.request import profile_of

BOTH = """
import nki
import nki.language as nl
import neuronxcc.nki as former
from neuronxcc.nki import trace, benchmark as timed

@former.jit(mode="trace")
def old(a): ...

@nki.jit
def new(a): ...

@timed(
    warmup=1,
)
@trace
def older(a): ...
"""
EITHER = """
try:
    import nki
except ImportError:
    import neuronxcc.nki as nki

@nki.jit
def kernel(a): ...
"""
CASES = [
    (BOTH, "old", Profile.BETA1),
    (BOTH, "older", Profile.BETA1),
    (BOTH, "new", DEFAULT),
    (BOTH, None, DEFAULT),
    (BOTH.replace("@nki.jit", "@former.jit"), None, Profile.BETA1),
    (EITHER, None, DEFAULT),
    (EITHER, "kernel", DEFAULT),
    ("from neuronxcc import nki\n", None, Profile.BETA1),
    (
        "from neuronxcc import nki\nfrom nki.language.constants import sizeinbytes\n",
        None,
        Profile.BETA1,
    ),
    ("# neuronxcc\nimport nki\n", None, DEFAULT),
]


@pytest.mark.parametrize(("text", "kernel", "wanted"), CASES)
def test_decorators_decide_where_imports_do_not(
    text: str, kernel: str | None, wanted: Profile
) -> None:
    assert profile_of(SourceFile("k.py", text), kernel) is wanted


# ------------------------------------------------------------------------------------------------
# `--like`: types of arguments from the headers of an npz file, by nki-run's reader.


def test_headers_give_types(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    np.savez(
        path,
        a=np.zeros((128, 4), np.float16),
        b=np.zeros(3, np.uint64),
        c=np.float32(1),
        d=np.zeros((2, 3), bool),
        e=np.zeros(5, ">i4"),
        f=np.zeros(2, np.int64),
    )
    found = read_like(str(path))
    assert [str(found[name]) for name in "adef"] == [
        "float16[128,4]",
        "bool[2,3]",
        "int32[5]",
        "int64[2]",
    ]
    assert found["b"].note == "its NumPy type uint64 is not an NKI dtype"
    assert "no dimensions" in found["c"].note


def test_types_that_numpy_lacks(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    noted = np.frombuffer(b'{"y": "float8_e5m2", "w": "float8_e5m2"}', np.uint8)
    arrays = {"x": "V2", "y": "V1", "z": "V1", "w": "V2"}
    contents: dict[str, Any] = {n: np.zeros(2, kind) for n, kind in arrays.items()}
    np.savez(path, __nki_dtypes__=noted, **contents)
    found = read_like(str(path))
    assert sorted(found) == ["w", "x", "y", "z"]
    assert (str(found["x"]), str(found["y"])) == ("bfloat16[2]", "float8_e5m2[2]")
    assert found["z"].dtype is None
    assert str(found["w"]) == "bfloat16[2]"  # a recorded type that does not fit the two bytes


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"text"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "d.npz"
    path.write_bytes(content)
    with pytest.raises(InputFailed, match=r"d\.npz`: it is not a zip archive"):
        read_like(str(path))


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in {
        "pipe": "it is not a regular file",
        "gone.npz": "no such file or directory",
        ".": "is a directory",
    }.items():
        with pytest.raises(UsageFailed, match=said):
            read_like(str(tmp_path / path))
    with pytest.raises(UsageFailed, match="cannot read standard input"):
        read_like("-")
    with pytest.raises(UsageFailed, match="it is not a regular file"):
        read_like("/dev/zero")
