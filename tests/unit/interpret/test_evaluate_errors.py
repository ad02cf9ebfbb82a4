"""Errors are one located diagnostic with the kernel's message, its values and the calls."""

import pytest

from nkic.base.device import SECOND_WAY, KernelError
from nkic.base.diagnostics import Diagnostic, Level
from nkic.base.limits import Limits
from nkic.base.source import CallChain, Span
from nkic.interpret.modules import Table
from nkic.language.namespace import Namespace
from tests.harness import metalanguage
from tests.harness.kernels import compile_text
from tests.harness.metalanguage import HEAD, Done, body, resolved, run

FIRST = 5  # the line of a kernel's first statement in `body`


def only(done: Done) -> tuple[str, str, tuple[int, int]]:
    assert len(done.said) == 1, done.said
    return done.slugs[0], done.said[0].message, done.places[0]


CASES = [
    ("return 1 + 'a'", "wrong-type", "unsupported operand type(s) for +: 'int' and 'str'", 8),
    ("return len(5)", "wrong-type", "object of type 'int' has no len()", 8),
    ("return 5(1)", "wrong-type", "'int' object is not callable", 8),
    ("for x in 5: pass", "wrong-type", "'int' object is not iterable", 10),
    ("return [1][7]", "wrong-index", "list index out of range", 8),
    ("return {'a': 1}['b']", "wrong-index", "the dict has no key 'b'", 8),
    ("return 1 // 0", "wrong-value", "integer division or modulo by zero", 8),
    ("a, b = 1, 2, 3", "wrong-value", "too many values to unpack (expected 2)", 1),
    ("return int('x')", "wrong-value", "invalid literal for int() with base 10: 'x'", 8),
    ("return [].appendd", "unknown-attribute", "a `list` has no attribute `appendd`", 8),
    ("return nl.flot32", "unknown-attribute", "`nki.language` has no `flot32`", 8),
    ("return nl.arange(3)", "removed-name", "NKI has no `nki.language.arange`", 8),
    ("x += 1", "unset-variable", "`x` is used before it has a value", 1),
    ("return kernel(1)", "wrong-call", "kernel() takes 0 positional arguments but 1 was given", 8),
    ("assert 1 > 2", "assertion-failed", "assertion failed: 1 > 2", 8),
    ("assert kernel == 0, f'n is {1 + 1}'", "assertion-failed", "n is 2", 8),
    ("raise ValueError(f'no {1}')", "kernel-raised", "ValueError: no 1", 1),
    ("raise KeyError", "kernel-raised", "KeyError", 1),
    ("return sorted([1, 'a'])", "wrong-type", "'<' not supported between instances of", 8),
    ("return range()", "wrong-type", "range expected at least 1 argument, got 0", 8),
    ("return iter(1, 2)", "wrong-type", "iter(v, w): v must be callable", 8),
    (
        "return kernel(**{'a': 1}, **{'a': 2})",
        "wrong-call",
        "kernel() got multiple values for keyword argument 'a'",
        8,
    ),
    ("return len(1, 2)", "wrong-type", "`len` is called with the wrong number or names", 8),
    ("with 5: pass", "not-in-nki", "`with` cannot be used with a value of type `int`", 6),
    ("import os; os.environ.x", "unknown-attribute", "an `os.environ` has no attribute `x`", 12),
    ("import os; os.environ['x'] = 1", "wrong-type", "'os.environ' object does not support", 12),
    (
        "import functools; functools.cmp_to_key(min)(1) + 1",
        "wrong-type",
        "unsupported operand type(s) for +: 'functools.KeyW",
        19,
    ),
    ("nl.x = 1", "hidden-attribute", "attribute `x` of the module `nki.language` cannot be", 1),
]


@pytest.mark.parametrize(("code", "slug", "message", "column"), CASES, ids=[c[0] for c in CASES])
def test_message_and_place(code: str, slug: str, message: str, column: int) -> None:
    found = only(body(code))
    assert found[0] == slug
    assert found[1].startswith(message)
    assert found[2] == (FIRST, column + 4)


@pytest.mark.parametrize(
    ("code", "help"),
    [
        ("return [].appendd", "did you mean `append`?"),
        ("return nl.flot32", "did you mean `float32`?"),
        ("return nl.arange(3)", "use a slice"),
        ("d = {'apple': 1}\nreturn d['appel']", "did you mean `apple`?"),
        ("return locals()", "keep the values you need"),
    ],
)
def test_advice(code: str, help: str) -> None:
    assert body(code).said[0].help.startswith(help)


def notes(code: str) -> list[str]:
    return list(body(code).said[0].notes)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("n = 3\nassert n % 2 == 0, 'even'", ["`n` is 3"]),
        ("t = (1, 2)\ni = 5\nreturn t[i]", ["`t` is (1, 2)", "`i` is 5"]),
        ("n = 0\nreturn 10 // n", ["`n` is 0"]),
        ("a = list(range(50))\nreturn a[99]", ["`a` is a list of 50"]),
        ("s = 'x' * 500\nreturn s[999]", [f"`s` is '{'x' * 59}…"]),
        ("a = b = c = d = e = 1\nassert a + b + c + d + e > 9", [f"`{n}` is 1" for n in "abcd"]),
        ("assert len([]) > 0", []),
    ],
)
def test_values_are_shown(code: str, expected: list[str]) -> None:
    assert notes(code) == expected


def test_values_of_attributes() -> None:
    text = f"""{HEAD}class C(nl.NKIObject):
    n: int = 4
@nki.jit
def kernel():
    c = C()
    assert c.n < 4 and NEVER_REACHED
NEVER_REACHED = 1
"""
    found = run(text).said[0]
    assert found.notes == ("`c.n` is 4",)


def test_the_assertion_text_is_whole() -> None:
    text = "[CODE_17] shape (128, 512): " + "must not be shortened " * 40
    assert body(f"assert False, {text!r}").said[0].message == text


def test_calls_are_labelled() -> None:
    text = f"""{HEAD}
def inner(x):
    return x[3]
def outer(x):
    return [inner(y) for y in x]
@nki.jit
def kernel():
    return outer(
        [[1]]
    )
"""
    done = run(text)
    assert done.places == [(5, 12)]
    labels = [(label.span.line, label.span.end_line, label.text) for label in done.said[0].labels]
    assert labels[0] == (7, 7, "called from here")
    assert labels[-1] == (10, 12, "called from here")


def test_calls_across_files_and_of_methods() -> None:
    files = {"tools.py": "class T:\n    def run(self, n):\n        return 1 / n\n"}
    text = (
        f"{HEAD}from tools import T\n@nki.jit\ndef kernel():\n    t = T()\n"
        "    return (t\n        .run(0))\n"
    )
    one = run(text, files=files).said[0]
    assert one.primary is not None
    assert one.primary.span == Span("tools.py", 3, 16, 3, 21)
    assert [label.span.path for label in one.labels] == ["k.py"]


def test_long_chains_are_shortened() -> None:
    calls = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(12))
    done = body(f"{calls}def f12(x):\n    return x[7]\nreturn f0([1])")
    assert done.slugs == ["wrong-index"]
    assert len(done.said[0].labels) == 8


def test_a_call_that_recurs_is_one_label() -> None:
    done = body("def f(n):\n    return f(n - 1)\nreturn f(5)")
    assert done.slugs == ["too-deep"]
    assert len(done.said[0].labels) == 2


# ---- our own functions --------------------------------------------------------------------------


def failing_call(code: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> Done:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    spaces = metalanguage.namespaces

    def with_instruction(log: list[str]) -> dict[str, Table | Namespace]:
        return {**spaces(log), "nki.isa": Namespace("nki.isa", {"step": fail, "apply": apply})}

    def apply(function: object) -> None:
        assert callable(function)
        function()

    monkeypatch.setattr(metalanguage, "namespaces", with_instruction)
    return body(f"import nki.isa as nisa\n{code}")


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("nisa.step(1, data=2 + 3)", (6, 18)),
        ("nisa.step(\n    1,\n    2 + 3)", (8, 9)),
        ("nisa.step(*[1, 2])", (6, 5)),
        ("nisa.step(1)", (6, 5)),
        ("(nisa\n .step(1, data=2))", (7, 15)),
    ],
)
def test_errors_point_at_the_argument(
    code: str, place: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = KernelError("wrong-value", "no", argument="data", position=1, help="try 3", notes=["n"])
    done = failing_call(code, error, monkeypatch)
    assert only(done) == ("wrong-value", "no", place)
    assert (done.said[0].help, done.said[0].notes) == ("try 3", ("n",))


def test_kernel_code_that_our_functions_call_is_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    done = failing_call("nisa.apply(lambda: 1 / 0)", ValueError(), monkeypatch)
    assert only(done)[0] == "wrong-value"
    assert done.places == [(6, 24)]


def test_defects_of_ours_are_not_blamed_on_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    from nkic.language import registers  # any module of ours that is not the meta-language's

    def broken() -> None:
        exec("raise LookupError('ours')", vars(registers))

    with pytest.raises(LookupError) as raised:
        failing_call("nisa.apply(nisa.step)", LookupError("x"), monkeypatch)
        spaces = metalanguage.namespaces
        isa = Namespace("nki.isa", {"broken": broken})
        monkeypatch.setattr(metalanguage, "namespaces", lambda log: {**spaces(log), "nki.isa": isa})
        body("import nki.isa as nisa\nnisa.broken()")
    assert raised.value.args == ("ours",)
    assert raised.value.__notes__ == ["while nkic evaluated k.py:6:5"]


def test_argument_spans() -> None:
    text = f"{HEAD}@nki.jit\ndef kernel():\n    f(a, *b, c)\n    g(1, 2)(x, key=[1,\n    2])\n"
    found, _ = resolved(f"{text}def f(): 1\ndef g(): 1\na = b = c = x = 1\n")
    assert found is not None

    def at(line: int, start: int, end_line: int, end: int) -> CallChain:
        return CallChain(Span("k.py", line, start, end_line, end))

    first, second = at(5, 5, 5, 16), at(6, 5, 7, 8)
    assert found.locate(first, "p", 0)[1:] == (5, 7, 5, 8)
    assert found.locate(first, "p", 1) == first.span  # after `*b` the position is unknown
    assert found.locate(second, "key")[1:] == (6, 16, 7, 7)
    assert found.locate(second, "other", 0)[1:] == (6, 13, 6, 14)
    assert found.locate(at(6, 5, 6, 12), "n", 1)[1:] == (6, 10, 6, 11)
    assert found.locate(at(9, 9, 9, 9), "n", 1)[1:] == (9, 9, 9, 9)


def test_limits_are_options() -> None:
    done = body("for i in range(100): pass", limits=Limits(steps=50))
    assert only(done)[0] == "runaway"
    assert "50 steps" in done.said[0].message
    assert body("for i in range(100): pass", limits=Limits(steps=1000)).slugs == []
    assert body("return [0] * 11", limits=Limits(length=10)).slugs == ["too-large"]
    assert body("return [0] * 10", limits=Limits(length=10)).value == [0] * 10


# ---- calls that do not fit ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message", "help"),
    [
        (
            "f(1)",
            "f() missing 1 required positional argument: 'rows'",
            "parameters are x, rows",
        ),
        ("f(1, row=2)", "f() got an unexpected keyword argument 'row'", "did you mean `rows`?"),
        (
            "f(1, 2, 3)",
            "f() takes 2 positional arguments but 3 were given",
            "parameters are x, rows",
        ),
        ("g(1)", "g() takes 0 positional arguments but 1 was given", "its parameters are none"),
    ],
)
def test_calls_that_do_not_fit_name_the_parameters(call: str, message: str, help: str) -> None:
    done = body(f"def f(x, rows): return x\ndef g(): return 1\nreturn {call}")
    assert done.slugs == ["wrong-call"]
    assert done.said[0].message == message
    assert help in done.said[0].help


@pytest.mark.parametrize("call", ["sorted([1], key=g)", "sorted([1], key=lambda: 1)"])
def test_a_function_that_is_passed_on_is_the_one_that_does_not_fit(call: str) -> None:
    done = body(f"def g(): return 1\nreturn {call}")
    assert done.slugs == ["wrong-call"]
    assert done.said[0].message.endswith("() takes 0 positional arguments but 1 was given")
    assert "is called by the function it is passed to" in done.said[0].help


def test_names_of_the_function_itself_are_suggested() -> None:
    text = f"{HEAD}def kernel(weights):\n    return weigths\n"
    _, said = resolved(text, "kernel")
    assert [one.help for one in said] == ["did you mean `weights`?"]


@pytest.mark.parametrize(
    ("code", "slug"),
    [
        ("import numpy as np\nreturn np.random.rand(3)", "host-module"),
        ("import numpy as np\nreturn np.fft.fft([1])", "unknown-attribute"),
        ("import numpy as np\nreturn np.ones(3) @ np.ones(3)", "wrong-type"),
        ("import random\nreturn random.random()", "host-module"),
        ("import functools\nreturn functools.partialmethod(len)", "not-in-nki"),
        ("class M(type): pass", "wrong-base"),
        ("return ExceptionGroup('', [])", "unknown-name"),
        ("return vars()", "unknown-name"),
        ("return (1).__dict__", "hidden-attribute"),
        ("try: pass\nexcept* ValueError: pass", "not-in-nki"),
    ],
)
def test_what_the_closed_world_lacks_names_the_second_way(code: str, slug: str) -> None:
    done = body(code)
    assert done.slugs == [slug]
    assert SECOND_WAY in done.said[0].notes


def test_what_python_lacks_as_well_does_not() -> None:
    done = body("return misspelt")
    assert SECOND_WAY not in done.said[0].notes
    assert SECOND_WAY not in body("return 3 + 'a'").said[0].notes
    assert SECOND_WAY not in body("return 'a'.nope").said[0].notes


# ------------------------------------------------------------------------------------------------
# Errors in unrolled loops name the iteration.

TEXT = """# /// nkic
# [args]
# a = "float32[128, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


def at(values, place):
    return values[place]


@nki.jit
def kernel(a):
    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
{body}
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def one(body: str) -> Diagnostic:
    lines = "\n".join(f"    {line}" for line in body.strip().split("\n"))
    said = compile_text(TEXT.format(body=lines))
    (found,) = [one for one in said if one.level is Level.ERROR or len(said) == 1]
    return found


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ("for i in range(4):\n    nisa.memset(t[:, i * 256 : i * 256 + 256], 0.0)", ["`i` is 2"]),
        (
            "for i in range(2):\n    for j, w in enumerate((256, 512)):\n"
            "        nisa.memset(t[:, i * 256 : i * 256 + w], 0.0)",
            ["`i` is 1", "`j` is 1, `w` is 512"],
        ),
        ("for i in range(4):\n    at([1, 2], i)", ["`i` is 2"]),
        ("for i in range(4):\n    pass\nnisa.memset(t[:, 0:600], 0.0)", []),
        ("for tile in [t]:\n    nisa.memset(tile[:, 0:600], 0.0)", []),
    ],
)
def test_loop_variables_around_the_place(body: str, labels: list[str]) -> None:
    error = one(body)
    words = "first where" if error.count > 1 else "here"
    found = [label.text for label in error.labels if label.text.startswith(words)]
    assert found == [f"{words} {text}" for text in labels]


def test_the_turn_of_an_instruction_that_check_refuses() -> None:
    found = one("for i in range(4):\n    nisa.memset(t, None if i == 2 else 0)")
    assert found.notes == ("this is instruction 3 of the 4 that unrolled loops make of this line",)


def test_a_line_that_makes_one_instruction_has_no_turn() -> None:
    assert one("nisa.memset(t, None)").notes == ()
