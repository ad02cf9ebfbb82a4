"""A line of a printed program or of printed records, read again."""

import re
from typing import Any

import pytest

from nkic.machine.dtypes import DTYPES
from nkic.machine.notation import JSON, PYTHON, Misread, Scanner, Style
from nkic.machine.operands import Register
from nkic.machine.patterns import Pattern, RunTimeOffset
from nkic.program.text import read_program
from tests.programs import program

VALUES: tuple[tuple[Style, str, Any], ...] = (
    (JSON, '[1, [2.5, -inf], "a;b", none, true]', (1, (2.5, float("-inf")), "a;b", None, True)),
    (PYTHON, "(1, (2.5, -inf), 'a;b', None, True)", (1, (2.5, float("-inf")), "a;b", None, True)),
    (JSON, '"\\u00e9 \\""', 'é "'),
    (PYTHON, "'\\U000000e9 \\U00000027'", "é '"),
    (PYTHON, "(3,)", (3,)),
    (PYTHON, "()", ()),
    (JSON, "-1e-06", -1e-06),
)


@pytest.mark.parametrize(("style", "text", "expected"), VALUES)
def test_both_texts_have_the_same_values(style: Style, text: str, expected: Any) -> None:
    scanner = Scanner(text, 1, style)
    assert scanner.value() == expected
    assert scanner.done


def test_what_a_pattern_prints_is_read_again() -> None:
    offset = RunTimeOffset("vector", 3, 512, 128, 1)
    pattern = Pattern(7, DTYPES["bfloat16"], 32, 64, 5, ((-2, 4), (1, 512)), offset)
    text = f"{pattern.notation(7)}:bfloat16 {offset.notation('+3')} $12"
    scanner = Scanner(text, 1, JSON)
    number, window = scanner.reference(), scanner.window()
    scanner.expect(":")
    dtype, dynamic = scanner.dtype(), scanner.dynamic(lambda s: s.setting("+"))
    assert Pattern(number, dtype, *window, dynamic) == pattern
    assert scanner.bound() == Register(12)
    assert scanner.done


def test_only_records_have_comments() -> None:
    assert Scanner("1 ; two", 1, JSON).peek(1) == ""
    assert Scanner("1 ; two", 1, PYTHON).peek(2) == "two"
    assert Scanner("[0; 1x2] ; two", 1, JSON).peek(4) == "x2"


@pytest.mark.parametrize(
    ("style", "text", "message"),
    [
        (JSON, "(1, 2)", "line 9: `(`, a value expected"),
        (PYTHON, "[1, 2]", "line 9: `[`, a value expected"),
        (PYTHON, "none", "line 9: `none`, a value expected"),
        (JSON, "'a'", "line 9: no word begins like `'a'`"),
        (PYTHON, f"{1 << 64}", "line 9: `18446744073709551616`, an integer of 64 bits expected"),
        (PYTHON, "(((((1,),),),),)", "line 9: `(`, at most 4 brackets in each other expected"),
        (JSON, "[1 2]", "line 9: `2`, `,` expected"),
    ],
)
def test_a_line_is_refused_with_its_number(style: Style, text: str, message: str) -> None:
    with pytest.raises(Misread) as caught:
        Scanner(text, 9, style).value()
    assert str(caught.value) == message


@pytest.mark.parametrize("address", ["(0, None)", "(0,)", "0", "(0, 0, 0)"])
@pytest.mark.parametrize("word", ["fixed", "at"])
def test_an_address_is_a_partition_and_a_byte(word: str, address: str) -> None:
    with pytest.raises(
        Misread, match=f"not the partition and byte of an address: {re.escape(address)}"
    ):
        program(f"%0 t: float32[128, 4] sbuf {word} {address}")


@pytest.mark.parametrize("view", ["%0{0; (1, 1); (1, 1)}:float32", "%0[0+1, 0; 1x1]:float32"])
def test_a_type_fits_into_a_partition(view: str) -> None:
    body = f"core\n  #0 any memset(dst={view}; value=0)"
    with pytest.raises(Misread, match="no float32 fits into a partition of %0 t: uint8"):
        program(f"%0 t: uint8[1, 1] sbuf\n{body}")


@pytest.mark.parametrize("view", ["%0[0+1, -1; 1x8]", "%0[0+1, 0; -1x2]"])
def test_an_access_begins_inside_its_tensor(view: str) -> None:
    body = f"core\n  #0 any memset(dst={view}; value=0)"
    with pytest.raises(Misread, match="an access begins before the first byte of %0 t: uint8"):
        program(f"%0 t: uint8[1, 8] sbuf\n{body}")


SHORT = "program k on trn2\n%0 t: uint8[1, 8] sbuf @k.py:1:1-1:9"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not `program NAME on TARGET`: "),
        ("program k on trn9", "line 1: there is no target `trn9`; known are trn1, trn2, trn3"),
        (
            SHORT.replace("uint8", "uint9"),
            "line 2: there is no `uint9`: %0 t: uint9[1, 8] sbuf @k.py:1:1-1:9",
        ),
        (SHORT.replace(" @k", " k"), "line 2: not understood: %0 t: uint8[1, 8] sbuf k.py:1:1-1:9"),
        (SHORT.replace("@k.py:1:", "@"), "line 2: not a place: 1-1:9"),
        (f"{SHORT}\ninput x = %1", "line 3: there is no `1`: input x = %1"),
        (f"{SHORT}\ncore\n  #0 any mem(", "line 4: not understood: #0 any mem("),
        (f"{SHORT}\ncores", "line 3: it does not belong there: cores"),
    ],
)
def test_what_is_wrong_with_a_program_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(Misread) as caught:
        read_program(text)
    assert str(caught.value) == message
