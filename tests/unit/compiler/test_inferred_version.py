"""Test the version of a file that imports both packages of NKI."""

from __future__ import annotations

import pytest

from nkic.base.profiles import DEFAULT, Profile
from nkic.base.source import SourceFile
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
