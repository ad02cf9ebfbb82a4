"""Test loops on the device: the body is evaluated once, between opening and closing the loop."""

import pytest

from tests.harness.metalanguage import body


def test_a_device_range_runs_its_body_once() -> None:
    done = body(
        "for i in nl.dynamic_range(3):\n    nl.log(f'body {i}')\nelse:\n"
        "    nl.log('else')\nnl.log('after')"
    )
    assert done.slugs == []
    assert done.log == ["open", "body counter", "close", "else", "after"]


def test_nested_loops() -> None:
    code = (
        "for i in nl.dynamic_range(3):\n    for j in range(2):\n"
        "        for k in nl.dynamic_range(j):\n            nl.log(str(j))"
    )
    assert body(code).log == ["open", "open", "0", "close", "open", "1", "close", "close"]


def test_continue_and_inner_breaks_are_fine() -> None:
    code = (
        "for i in nl.dynamic_range(3):\n    for j in range(9):\n"
        "        if j: break\n    if j: continue\n    nl.log('end')"
    )
    assert body(code).log == ["open", "close"]


def test_a_register_condition_runs_its_body_once() -> None:
    done = body(
        "r = nl.register()\nwhile r:\n    nl.log('body')\nelse:\n"
        "    nl.log('else')\nnl.log('after')"
    )
    assert done.slugs == []
    assert done.log == ["while", "body", "end", "else", "after"]


@pytest.mark.parametrize("test", ["x", "x and True", "f()", "t[0]", "(y := x)", "x if 1 else 2"])
def test_plain_conditions_of_every_form(test: str) -> None:
    code = (
        f"x = [1, 2, 3]\ndef f(): return x\nt = [x]\nn = 0\nwhile {test}:\n"
        "    x.pop()\n    n += 1\nreturn n"
    )
    assert body(code).value == 3


@pytest.mark.parametrize(
    ("code", "word", "line"),
    [
        ("for i in nl.dynamic_range(3):\n    break", "`break`", 6),
        ("for i in nl.dynamic_range(3):\n    return 1", "`return`", 6),
        ("for i in nl.dynamic_range(3):\n    for j in range(3):\n        return 1", "`return`", 7),
        (
            ("for i in range(3):\n    for j in nl.dynamic_range(3):\n        if True: break"),
            "`break`",
            7,
        ),
        (
            (
                "for i in nl.dynamic_range(3):\n    if 1:\n        for j in [1]: pass\n"
                "        else: break"
            ),
            "`break`",
            8,
        ),
        ("r = nl.register()\nwhile r:\n    break", "`break`", 7),
        ("r = nl.register()\nwhile r:\n    for i in [1]: return i", "`return`", 7),
    ],
)
def test_leaving_a_device_loop(code: str, word: str, line: int) -> None:
    done = body(code)
    assert done.slugs == ["device-loop-misuse"]
    assert done.said[0].message.startswith(word)
    assert done.places[0][0] == line


@pytest.mark.parametrize(
    "code",
    [
        "return [i for i in nl.dynamic_range(3)]",
        "return sum(i for i in nl.dynamic_range(3))",
        "return {i: 1 for i in nl.dynamic_range(3)}",
        "r = nl.register()\nwhile r:\n    r = 5",
    ],
)
def test_other_misuse(code: str) -> None:
    assert body(code).slugs == ["device-loop-misuse"]


def test_leaving_plain_loops_works_inside_functions() -> None:
    code = (
        "def f(xs):\n    for x in xs:\n        while x:\n"
        "            if x > 1: return x\n            break\nreturn f([1, 5, 2])"
    )
    assert body(code).value == 5


@pytest.mark.parametrize("code", ["for x in nl: pass", "for x in nl.register(): pass"])
def test_what_cannot_be_gone_through(code: str) -> None:
    assert body(code).slugs == ["wrong-type"]
