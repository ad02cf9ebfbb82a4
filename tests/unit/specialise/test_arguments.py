"""Test types and values of arguments as text: --arg, --const, --like, the inline block."""

import ast
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.diagnostics import CompileFailed, UsageFailed
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.specialise import inline
from nkic.specialise.inline import DottedName, read_block
from nkic.specialise.request import RequestOptions, TensorType, combine


def type_of(text: str) -> tuple[str, tuple[int, ...] | None]:
    found = inline.parse_type(text, "--arg a")
    assert found.dtype is not None
    return found.dtype.name, found.shape


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("float16[128,512]", ("float16", (128, 512))),
        (" nl.bfloat16 [128, 512, ] ", ("bfloat16", (128, 512))),
        ("bf16[7]", ("bfloat16", (7,))),
        ("128x512xf32", ("float32", (128, 512))),
        ("4xi32", ("int32", (4,))),
        ("uint8", ("uint8", None)),
    ],
)
def test_types(text: str, expected: tuple[str, tuple[int, ...] | None]) -> None:
    assert type_of(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("float16[128,", "not a tensor type"),
        ("flaot16[1]", "no dtype `flaot16`"),
        ("float16[]", "not all whole numbers"),
        ("float16[128,-1]", "not all whole numbers"),
        ("float16[0]", "from 1 to 2147483647"),
        ("float16[99999999999999999999999]", "from 1 to 2147483647"),
        ("float16[1,1,1,1,1,1,1,1,1]", "9 dimensions; at most 8"),
        ("", "not a tensor type"),
    ],
)
def test_types_refused(text: str, said: str) -> None:
    with pytest.raises(UsageFailed) as caught:
        inline.parse_type(text, "--arg a")
    assert said in str(caught.value)


def test_a_wrong_dtype_names_the_nearest() -> None:
    with pytest.raises(UsageFailed) as caught:
        inline.parse_type("flaot16[1]", "--arg a")
    assert caught.value.diagnostics[0].help == "did you mean `float16`?"


@pytest.mark.parametrize("text", ["a", "=float16[1]", "a=", "a b=float16[1]", "1a=int8[1]"])
def test_name_and_value(text: str) -> None:
    with pytest.raises(UsageFailed, match="NAME=VALUE"):
        inline.parse_arg(text)


# Constants

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="ascii"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(st.characters(codec="ascii"), max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(PLAIN)
def test_python_literals_are_read_as_python_reads_them(value: Any) -> None:
    text = repr(value)
    if "\\x" in text:  # Python's two-digit escapes are the only form that JSON lacks
        return
    assert inline.parse(text) == ast.literal_eval(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1F", 31),
        ("-1e-6", -1e-6),
        ('{"a": [1, null, true]}', {"a": [1, None, True]}),
        ("(1,)", (1,)),
        ("(1)", 1),
        ("'it''s'", None),
        ("nl.float32", DottedName("nl.float32")),
        ("[nl.add, 3]", [DottedName("nl.add"), 3]),
        ("-inf", None),
    ],
)
def test_literals(text: str, value: Any) -> None:
    if value is None:
        with pytest.raises(inline.LiteralError):
            inline.parse(text)
        return
    assert inline.parse(text) == value


def test_nan_and_depth() -> None:
    assert math.isnan(inline.parse("nan"))
    with pytest.raises(inline.LiteralError, match="more than 50 levels deep"):
        inline.parse("[" * 5000)
    with pytest.raises(inline.LiteralError, match="digits"):
        inline.parse("9" * 5000)


def test_a_bad_constant_says_how_to_quote() -> None:
    with pytest.raises(UsageFailed) as caught:
        inline.parse_const("mode=fast and loose")
    assert "--const mode='\"fast and loose\"'" in caught.value.diagnostics[0].help


# The inline block

KERNEL = """import nki
# /// nkic
# kernel = "add"
# target = "trn1"
# nki = 0.4
# grid = [2]
# lnc = 1
#
# [args]
# a = "float16[128, 512]"
# b = { dtype = "bf16", shape = [3] }
# [consts]
# eps = 1e-6
# op = "nl.add"
# mode = "fast"
# perm = [1, 0]
# ///
def add(a, b): pass
"""


def test_block() -> None:
    found = read_block(SourceFile("k.py", KERNEL))
    assert (found.kernel, found.grid, found.lnc) == ("add", (2,), 1)
    assert found.target is not None and found.target.name == "trn1"
    assert found.profile is Profile.NKI_0_4
    assert {k: str(v) for k, v in found.args.items()} == {
        "a": "float16[128,512]",
        "b": "bfloat16[3]",
    }
    assert found.consts == {"eps": 1e-6, "op": DottedName("nl.add"), "mode": "fast", "perm": (1, 0)}


def test_no_block() -> None:
    assert read_block(SourceFile("k.py", "# /// script\n# ///\nx = 1\n")) == RequestOptions()


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (["# kernel = 3", "# ///"], 2, "must be a string"),
        (["# kernle = 'x'", "# ///"], 2, "unknown key `kernle`"),
        (["# kernel = ", "# ///"], 2, "not valid TOML"),
        (["# [args]", "# a = 'flaot16[1]'", "# ///"], 3, "no dtype `flaot16`"),
        (["# target = 'trn9'", "# ///"], 2, "unknown target"),
        (["# lnc = true", "# ///"], 2, "1 or 2"),
        (["# args = 3", "# ///"], 2, "must be a table"),
        (["# kernel = 'x'"], 1, "is not closed"),
        (["# ///", "# /// nkic", "# ///"], 3, "second nkic block"),
        (["# when = 1979-05-27", "# ///"], 2, "unknown key"),
        (["# [consts]", "# when = 1979-05-27", "# ///"], 3, "cannot use"),
    ],
)
def test_bad_blocks_are_located(lines: list[str], line: int, said: str) -> None:
    with pytest.raises(CompileFailed) as caught:
        read_block(SourceFile("k.py", "\n".join(["# /// nkic", *lines, ""])))
    found = caught.value.diagnostics[0]
    assert found.primary is not None
    assert (found.primary.span.line, said in found.message) == (line, True), found.message


# Precedence


def named(text: str) -> TensorType:
    return inline.parse_type(text, text)


def test_the_command_line_wins_over_like_and_that_over_the_block() -> None:
    unusable = TensorType(None, (4,), "--like", "not an NKI dtype")
    like = {name: named("int8[3]") for name in ("a", "b", "d")} | {"c": unusable}
    command = RequestOptions(args={"a": named("int8[1]")}, consts={"n": 1}, like=like)
    block = RequestOptions(
        kernel="k",
        args={name: named("int8[2]") for name in ("a", "n", "b", "c")},
        consts={"a": 5, "m": 6, "d": 7},
    )
    request = combine(command, block)
    assert {k: str(v) for k, v in request.args.items()} == {"a": "int8[1]"}  # `c` is an error
    assert request.consts == {"m": 6, "n": 1}
    assert sorted(request.like) == ["b", "c", "d"]
    assert request.kernel == "k"


# ------------------------------------------------------------------------------------------------
# Test `--const` values as objects of the kernel's own classes.

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
