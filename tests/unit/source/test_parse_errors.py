"""Syntax errors: the code, the exact place and the sentence."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from nkic.base.diagnostics import CompileFailed, Diagnostic, codes
from nkic.base.source import SourceFile, Span
from nkic.source.generate import LOOKAHEAD_WORDS
from nkic.source.parse import parse
from nkic.source.parser import load

# Slug, place | text, then the message. ⏎ ends a line, ⇥ is a tab, ␀ is NUL, ⍽ a no-break space.
TABLE = r"""
# characters, numbers, strings
bad-character 1:5-1:6 | x = “a”
    the character `“` U+201C (left double quotation mark) is not allowed here
bad-character 1:6-1:7 | é = ü⍽+ 1
    the character U+00A0 (no-break space) is not allowed here
bad-character 1:3-1:4 | a ? b
    `?` has no meaning here
bad-character 1:5-1:6 | x = `a`
    a backtick has no meaning here
bad-character 1:4-1:5 | if !x: pass
    `!` has no meaning here
bad-character 1:6-1:7 | x = a␀b
    the character U+0000 is not allowed here
bad-number 1:5-1:9 | x = 0777
    `0777` starts with a zero, which is neither decimal nor octal
bad-number 1:1-1:5 | 1__0
    `1__0`: an underscore must be between two digits
bad-number 1:1-1:3 | 1_
    `1_`: an underscore must be between two digits
bad-number 1:1-1:4 | 12L
    `12L`: integers have no suffix; they can be of any size
bad-number 1:1-1:5 | 0b12
    `0b12` is not a binary number
bad-number 1:5-1:9 | x = 2.0f
    `2.0f` is not a number
unterminated-string 1:5-1:7 | a = 'x
    this string is not closed before the end of the line
unterminated-string 1:11-1:14 | a = 'é' + '''x⏎y
    this string is not closed before the end of the file
unterminated-string 1:5-1:7 | a = f'{b}⏎c
    this string is not closed before the end of the line
bad-string 1:1-1:6 | '\x1'
    `\x1` needs 2 hexadecimal digits after the `x`
bad-string 1:1-1:13 | '\U00110000'
    `\U00110000` is beyond the last character, U+10FFFF
bad-string 1:6-1:13 | f'{a}\N{foo}'
    `\N{foo}` does not name a character
bad-string 1:1-1:5 | b'é'
    a bytes literal can contain only ASCII characters
bad-string 1:5-1:9 | 'a' b'b'
    adjacent strings must be all text or all bytes
bad-continuation 1:3-1:4 | a \ ⏎b
    a backslash continues a line only if it is the last character
bad-continuation 1:2-1:2 | a \
    the file ends after a backslash that continues the line
bad-fstring 1:4-1:5 | f'{}'
    this field of the f-string contains no expression
bad-fstring 1:9-1:10 | f'{a!r}{!r}'
    this field of the f-string contains no expression
bad-fstring 1:3-1:4 | f'{a'
    this field of the f-string is not closed before the string ends
bad-fstring 1:3-1:4 | f'{a:>3'
    this field of the f-string is not closed before the string ends
bad-fstring 1:4-1:5 | f'a}'
    this `}` closes no field of the f-string
bad-fstring 1:6-1:7 | f'{a b}'
    a field of an f-string holds one expression; this does not belong to it
bad-fstring 1:5-1:7 | f'{a!x}'
    `!x` is not a conversion of an f-string's field
bad-fstring 1:5-1:8 | f'{a! r}'
    the conversion must follow the `!` directly
bad-fstring 1:13-1:14 | f'{lambda x:1}'
    a lambda in an f-string needs parentheses, since `:` starts the format

# indentation
unexpected-indent 2:5-2:6 | x = 1⏎    y = 2
    this line is indented further than the one before it, which opens no block
missing-block 2:1-2:5 | def f():⏎pass
    the block of `def` in line 1 is missing
missing-block 2:16-2:16 | if a:⏎    for b in c:⏎    # no⏎
    the block of `for` in line 2 is missing
bad-dedent 3:1-3:3 | if a:⏎    b⏎  c
    this line is indented by 2, which does not match any enclosing block
mixed-tabs 3:1-3:9 | if a:⏎⇥b⏎        c
    this line's indentation mixes tabs and spaces differently from the lines before it

# brackets
unclosed-bracket 1:5-1:6 | x = (1,⏎y = 2
    this `(` is never closed
unmatched-bracket 2:13-2:14 | a[0]⏎x = f(a[1, 2)⏎
    `)` cannot close the `[` of line 2
unclosed-bracket 1:5-1:6 | x = [1, 2⏎def f(a=1):⏎    return (a)⏎
    this `[` is never closed
unmatched-bracket 1:5-1:6 | f(a))
    this `)` closes nothing
unmatched-bracket 1:5-1:6 | f'{a)}'
    `)` cannot close the `{` of line 1

# something missing
missing-colon 1:10-1:10 | if a == 1⏎    b
    the line of `if` must end with a colon
missing-colon 1:16-1:16 | def f(x) -> int  # why⏎    b
    the line of `def` must end with a colon
missing-colon 1:18-1:18 | async with a as b⏎    c
    the line of `with` must end with a colon
missing-colon 1:8-1:8 | match x⏎  case 1: pass
    the line of `match` must end with a colon
missing-colon 2:9-2:9 | match x:⏎  case 1⏎    a
    the line of `case` must end with a colon
missing-colon 2:5-2:5 | if a: b⏎else⏎  c
    the line of `else` must end with a colon
missing-comma 1:4-1:4 | f(a b)
    a comma or an operator is missing before `b`
missing-comma 2:4-2:4 | f(⏎  a⏎  b=1)
    a comma or an operator is missing before `b`
missing-comma 1:8-1:8 | {'a': 1 'b': 2}
    a comma or an operator is missing before `'b'`
missing-value 1:8-1:8 | x = 1 +
    a value is missing after `+`
missing-value 1:5-1:6 | f(a,,b)
    a value is missing after `,`
missing-value 1:3-1:4 | a[]
    a value is missing after `[`
missing-value 1:9-1:12 | x = a + and b
    a value is missing after `+`
missing-value 1:17-1:17 | from a import b,
    a name is missing after `,`
missing-value 1:7-1:8 | def f(1): pass
    a name is missing after `(`
missing-value 1:11-1:11 | x = 1 if y
    a conditional expression needs an `else`
missing-value 1:6-1:6 | for x of y: pass
    `in` is missing after the loop variable
missing-value 1:13-1:13 | x = {1: 2, 3}
    the key of a dict needs a colon and a value after it

# assignments and names
assignment-in-expression 1:6-1:7 | if x = 1: pass
    `=` cannot be used within an expression
assignment-in-expression 1:8-1:9 | x = [a = 1]
    `=` cannot be used within an expression
assignment-in-expression 1:6-1:7 | f(a.b=1)
    only a plain name can be used before `=` in a call
assignment-in-expression 1:3-1:5 | a := 1
    `:=` needs parentheses here
keyword-as-name 1:1-1:6 | class = 3
    `class` is a keyword and cannot be a name here
keyword-as-name 1:5-1:11 | def lambda(): pass
    `lambda` is a keyword and cannot be a name here
keyword-as-name 1:3-1:8 | x.class = 1
    `class` is a keyword and cannot be a name here
keyword-as-name 1:3-1:7 | f(True=1)
    `True` is a keyword and cannot be a name here
keyword-as-name 1:6-1:10 | x = (pass)
    `pass` is a keyword and cannot be a name here
not-assignable 1:1-1:4 | a+1 = 2
    the result of an operator cannot be assigned to
not-assignable 1:1-1:5 | None = 1
    `None` cannot be assigned to
not-assignable 1:8-1:11 | a, [b, f()] = c
    the result of a call cannot be assigned to
not-assignable 1:1-1:7 | (a, b) += 1
    a tuple cannot be the target of `+=`
not-assignable 1:1-1:4 | [a]: int
    a list cannot be annotated
not-assignable 1:5-1:6 | for 1 in x: pass
    a constant cannot be assigned to
not-assignable 1:8-1:11 | [a for f'' in b]
    an f-string cannot be assigned to
not-assignable 1:11-1:14 | with a as b(): pass
    the result of a call cannot be assigned to
not-assignable 1:5-1:10 | x = yield = 1
    the result of `yield` cannot be assigned to
not-assignable 1:8-1:11 | del a, f()
    the result of a call cannot be deleted
bad-star 1:5-1:7 | x = *a
    a starred value cannot stand alone
bad-star 1:8-1:10 | print((*a))
    a starred value cannot stand alone
bad-star 1:5-1:7 | *a, *b = c
    only one starred name can take the remaining elements
bad-star 1:6-1:8 | x = [**a]
    `**` cannot unpack anything here

# Python 2
python-2-syntax 1:1-1:8 | print x
    `print` is a function: its arguments need parentheses
python-2-syntax 1:6-1:8 | if a <> b: pass
    `<>` is not an operator
python-2-syntax 1:8-1:9 | raise A, 'b'
    the arguments of an exception need parentheses
python-2-syntax 2:9-2:10 | try: pass⏎except A, e: pass
    several exceptions need parentheses, and a name for the exception needs `as`

# clauses
misplaced-clause 1:1-1:5 | else: pass
    this `else` does not continue any `if`, `for`, `while` or `try`
misplaced-clause 3:1-3:5 | if a: b⏎c⏎elif d: e
    this `elif` does not continue any `if`
misplaced-clause 2:1-2:8 | if a: b⏎else if c: d
    `else if` is written `elif`
misplaced-clause 3:1-3:2 | try:⏎  a⏎b
    the `try` before this line has no `except` and no `finally`
misplaced-clause 2:1-2:7 | try: a⏎except: b⏎except C: d
    an `except` for everything must be the last one
misplaced-clause 3:7-3:8 | try: a⏎except B: c⏎except* D: e
    a `try` has either `except` or `except*` clauses, not both

# parameters and arguments
parameter-order 1:12-1:13 | def f(a=1, b): pass
    the parameter `b` without a default follows one with a default
parameter-order 1:7-1:8 | def f(*): pass
    a `*` without a name must be followed by a named parameter
parameter-order 1:12-1:14 | lambda *a, *b: 1
    only one `*` can be in a parameter list
parameter-order 1:12-1:13 | def f(**k, a): pass
    nothing can follow `**`
parameter-order 1:7-1:8 | def f(/, a): pass
    at least one parameter must precede `/`
parameter-order 1:11-1:12 | def f(*a, /): pass
    `/` can occur once, before any `*`
argument-order 1:8-1:9 | f(a=1, b)
    a positional argument cannot follow a keyword argument
argument-order 1:8-1:10 | f(**a, *b)
    `*…` cannot follow `**…` in a call
argument-order 1:3-1:15 | f(a for a in b, c)
    a generator expression beside other arguments needs parentheses of its own
argument-order 1:3-1:15 | f(a for a in b,)
    a generator expression beside other arguments needs parentheses of its own
argument-order 1:8-1:22 | class A(a for a in b): pass
    a generator expression as a base class needs parentheses of its own
duplicate-name 1:13-1:14 | def f(a, *, a): pass
    the parameter `a` occurs twice
duplicate-name 1:8-1:11 | f(a=1, a=2)
    the argument `a` is given twice

# places
outside-function 2:3-2:11 | class A:⏎  return 1
    `return` is not in a function
outside-function 1:6-1:11 | x = (yield)
    `yield` is not in a function
outside-function 1:12-1:17 | def f(): [(yield) for a in b]
    `yield` cannot be used in a comprehension
outside-function 1:28-1:33 | def f(): [a for a in b if (yield)]
    `yield` cannot be used in a comprehension
outside-function 1:26-1:33 | async def f(): x=lambda: await a
    this `await` is in a function that is not async
outside-function 1:10-1:17 | def f(): await x
    this `await` is in a function that is not async
outside-function 1:1-1:23 | async for a in b: pass
    this `async` is not in a function
outside-function 1:1-1:21 | [a async for a in b]
    this `async` is not in a function
outside-loop 2:12-2:17 | while a:⏎  def f(): break
    `break` is not in a loop
outside-loop 2:7-2:15 | for a in b: pass⏎else: continue
    `continue` is not in a loop

# patterns
bad-match-pattern 2:10-2:11 | match x:⏎  case 1+1: pass
    a pattern can only compute a complex number: `1` is real
bad-match-pattern 2:8-2:12 | match x:⏎  case f'a': pass
    an f-string cannot be a pattern
bad-match-pattern 2:15-2:16 | match x:⏎  case A(x=1, 2): pass
    a pattern by position cannot follow a pattern by name
bad-match-pattern 2:12-2:14 | match x:⏎  case *a, *b: pass
    only one starred name can match the remaining elements
bad-match-pattern 2:9-2:12 | match x:⏎  case {**a, 1:2}: pass
    `**rest` must be the last entry of the pattern
bad-match-pattern 2:8-2:14 | match x:⏎  case a as _: pass
    `_` matches anything and cannot be the name after `as`

# the rest
bad-syntax 1:7-1:8 | x = a b
    `a` and `b` are next to each other without an operator
bad-syntax 1:7-1:9 | x = a && b
    `&&` is not an operator
bad-syntax 1:1-1:7 | retrun x
    `retrun` is not a keyword, and a name cannot be followed directly by a value
bad-syntax 1:7-1:9 | if a: if b: pass
    `if` must be the first word of a line
bad-syntax 2:1-2:2 | @a⏎x = 1
    a decorator must be followed by a function or a class
bad-syntax 1:6-1:6 | def f: pass
    the parameters of `f` are missing
bad-syntax 2:3-2:7 | match x:⏎  pass
    the block of a `match` holds only `case` blocks
bad-syntax 1:8-1:9 | class a.b: pass
    `.` cannot be used here
bad-syntax 1:9-1:9 | lambda x
    the line ends within a statement
"""
MARKS = str.maketrans({"⏎": "\n", "⇥": "\t", "␀": "\0", "⍽": "\u00a0"})


class Case(NamedTuple):
    slug: str
    place: str
    text: str
    message: str


def cases() -> Iterator[Case]:
    rows = [row for row in TABLE.splitlines() if row and not row.startswith("#")]
    for head, message in zip(rows[::2], rows[1::2], strict=True):
        slug_and_place, text = head.split(" | ", 1)
        slug, place = slug_and_place.split()
        yield Case(slug, place, text.translate(MARKS), message.strip())


CASES = list(cases())


def complaint(text: str) -> Diagnostic:
    with pytest.raises(CompileFailed) as raised:
        parse(SourceFile("k.py", text))
    (found,) = raised.value.diagnostics
    return found


def place(span: Span | None) -> str:
    return f"{span.line}:{span.column}-{span.end_line}:{span.end_column}" if span else ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.slug}:{case.text[:30]!r}")
def test_the_complaint_is_exact(case: Case) -> None:
    found = complaint(case.text)
    assert found.primary is not None
    where = place(found.primary.span)
    assert Case(found.code.slug, where, case.text, found.message) == case


def test_every_code_of_the_family_is_shown() -> None:
    """Except those about bytes and limits, which have their own tests."""
    family = {slug for slug, code in codes().items() if code.number.startswith("NKI01")}
    elsewhere = {"not-utf8", "unknown-encoding", "nul-byte", "too-many-levels"}
    of_others = {"bad-program-text"}
    assert {case.slug for case in CASES} == family - elsewhere - of_others


def test_a_number_too_long_to_convert() -> None:
    found = complaint("x = " + "1" * 5000)
    assert found.message == "a decimal number of 5000 digits is too long to convert"
    assert found.primary is not None
    assert place(found.primary.span) == "1:5-1:5005"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.slug}:{case.text[:30]!r}")
def test_every_complaint_helps_and_speaks_no_jargon(case: Case) -> None:
    found = complaint(case.text)
    assert found.help
    said = " ".join([found.message, found.help, *(label.text for label in found.labels)])
    terminals = [name for name in load().terminals if not name.isalpha() or name.isupper()]
    jargon = {*terminals, "$END", "token", "expected one of"} - {*LOOKAHEAD_WORDS}
    assert not [word for word in jargon if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said)]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("x = (1,\ny = 2", [("this cannot be inside it", 2, 3)]),
        ("x = (1,\n\n", [("the file ends here", 1, 8)]),
        ("f(a, [b, c)", [("opened here", 1, 6)]),
        ("f(a b)", [("the next value", 1, 5)]),
        ("if a:\nb", [("this line opens a block", 1, 1)]),
        ("def f(a, a): pass", [("first here", 1, 7)]),
        ("f(a=1, b)", [("this comes first", 1, 3)]),
    ],
)
def test_labels_point_at_what_else_matters(text: str, labels: list[tuple[str, int, int]]) -> None:
    found = [(label.text, label.span.line, label.span.column) for label in complaint(text).labels]
    assert found == labels


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("if a\n    b\n", "if a:\n    b\n"),
        ("f(a b)", "f(a, b)"),
        ("x = “a", 'x = "a'),
        ("a <> b", "a != b"),
        ("a && b", "a  and  b"),
        ("if a: b\nelse if c: d", "if a: b\nelif c: d"),
        ("12L", "12"),
        ("f'}'", "f'}}'"),
    ],
)
def test_fixes_repair_the_text(wrong: str, right: str) -> None:
    (fix,) = complaint(wrong).fixes
    lines = wrong.split("\n")
    assert fix.span.line == fix.span.end_line
    line = lines[fix.span.line - 1]
    repaired = line[: fix.span.column - 1] + fix.replacement + line[fix.span.end_column - 1 :]
    lines[fix.span.line - 1] = repaired
    assert "\n".join(lines).replace(",b", ", b").replace(",  ", ", ") == right


def test_the_first_error_in_the_text_wins() -> None:
    assert complaint("x = = 1\ny = 'a\n").code.slug == "missing-value"
    assert complaint("x = 1\ny = 'a\nz = = 1\n").code.slug == "unterminated-string"


@pytest.mark.parametrize("text", ["\u0301x = 1\n", "x = \u0663\n", "\u00b7 = 1\n"])
def test_a_character_that_may_go_on_with_a_name_but_not_begin_one(text: str) -> None:
    with pytest.raises(CompileFailed):
        parse(SourceFile("k.py", text))
