"""Test `--const` values as objects of the kernel's own classes."""

from __future__ import annotations

import pytest

from nkic.base.diagnostics import CompileFailed, UsageFailed
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for

SOURCE = """
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Optional

import nki
import nki.isa as nisa
import nki.language as nl


class Mode(Enum):
    FAST = 1
    EXACT = "exact"


@dataclass(frozen=True)
class Config:
    rows: int
    mode: Mode = Mode.FAST

    def __post_init__(self):
        assert self.rows > 0, f"{self.rows} rows"


class Pair(NamedTuple):
    x: int
    y: int = 7


class Plain(nl.NKIObject):
    n: int
    dtype: object = None


@nki.jit
def kernel(
    a, cfg: Config = None, mode: Mode = None, pair: Optional[Pair] = None, obj: "Plain" = None, x=0
):
    print(cfg, mode, pair, obj, x)
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def printed(*consts: str) -> str:
    loader = Loader.beside("k.py")
    source = loader.main("k.py", SOURCE.encode())
    options = parse_options(args=["a=float32[128,64]"], consts=consts)
    request = request_for(source, options, {})
    return "".join(compile_source(source, request, loader).messages).strip()


@pytest.mark.parametrize(
    ("const", "text"),
    [
        ('cfg={"rows": 2}', "Config(rows=2, mode=<Mode.FAST: 1>) None None None 0"),
        ("cfg=Config(2, mode=Mode.EXACT)", "Config(rows=2, mode=<Mode.EXACT: 'exact'>)"),
        ('mode="EXACT"', "None Mode.EXACT None"),
        ('mode="exact"', "None Mode.EXACT None"),
        ("mode=1", "None Mode.FAST None"),
        ("mode=Mode.FAST", "None Mode.FAST None"),
        ("pair=[1]", "None None Pair(x=1, y=7)"),
        ("pair={'x': 1, 'y': 2}", "None None Pair(x=1, y=2)"),
        ("pair=Pair(3)", "None None Pair(x=3, y=7)"),
        ("pair=None", "None None None"),
        ("obj=Plain(3, dtype=nl.bfloat16)", "None None None Plain(n=3, dtype=bfloat16)"),
        ('obj={"n": 1}', "None None None Plain(n=1, dtype=None)"),
        (
            "x=[Pair(1), {'k': Mode.FAST}]",
            "None None None None [Pair(x=1, y=7), {'k': <Mode.FAST: 1>}]",
        ),
        ('x={"rows": 2}', "None None None None {'rows': 2}"),
    ],
)
def test_objects(const: str, text: str) -> None:
    assert printed(const).startswith(text)


@pytest.mark.parametrize(
    ("const", "text"),
    [
        ('cfg={"row": 2}', "unexpected keyword argument 'row'"),
        ("obj=Plain(4, 5, 6)", "`Plain` takes 2 values, and 3 were given"),
        ('mode="FASTER"', "'FASTER' is not a member of Mode"),
        ("cfg=Confi(1)", "`Confi` is neither a literal nor a name"),
        ("cfg=Config(rows=1, 2)", "`2` in `Config(…)` follows a field given by name"),
        ("cfg=Config(rows=1, rows=2)", "`rows=` in `Config(…)` is not a new field"),
        ("cfg=Config(1=2)", "`1=` in `Config(…)` is not a new field"),
        ("cfg=nl.add(1)", "`nl.add` is not a class of the kernel's file"),
        ("cfg=kernel(1)", "is not a class of the kernel's file"),
        ("cfg=Config(rows=2", "`,` or `)` is missing before `the end`"),
    ],
)
def test_what_is_no_object(const: str, text: str) -> None:
    with pytest.raises(UsageFailed) as failed:
        printed(const)
    (one,) = failed.value.diagnostics
    assert one.code.slug == "bad-argument"
    assert text in one.message


def test_the_class_itself_may_refuse() -> None:
    with pytest.raises(CompileFailed) as failed:
        printed("cfg=Config(rows=0)")
    (one,) = failed.value.diagnostics
    assert one.message == "0 rows"
    assert one.primary is not None
