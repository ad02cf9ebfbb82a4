"""Source text that grows in one construct at a time, and a count of the work that it causes.

Each construct is a function of a size. Work is counted in Python's bytecode instructions, the
same number on every machine; it must grow as the text does.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Text = Callable[[int], str]

HEAD = """import nki
import nki.language as nl
import nki.isa as nisa
"""


def numbered(form: str, n: int, between: str = "\n") -> str:
    """Repeat `form` for each number from 0 to n, with `#` replaced by the number."""
    return between.join(form.replace("#", str(i)) for i in range(n))


def in_kernel(lines: str, before: str = "") -> str:
    """Return a file whose kernel has these lines."""
    body = "\n".join("    " + line for line in lines.split("\n"))
    return f"{HEAD}{before}\n@nki.jit\ndef k(a):\n{body}\n    return a\n"


# Expressions that repeat one construct.
EXPRESSIONS: dict[str, Text] = {
    "attributes": lambda n: "a" + ".b" * n,
    "attributes of a module": lambda n: "nl" + ".b" * n,
    "calls": lambda n: "a" + "()" * n,
    "method calls": lambda n: "a" + ".b()" * n,
    "subscripts": lambda n: "a" + "[0]" * n,
    "slices": lambda n: "a[" + "1:2:3, " * n + "]",
    "mixed trailers": lambda n: "a" + ".b[0](1)" * n,
    "sums": lambda n: "+".join(["a"] * n),
    "alternating operators": lambda n: "a" + "+b*c-d" * n,
    "shifts": lambda n: "<<".join(["a"] * n),
    "bit operators": lambda n: "a" + "|b^c&d" * n,
    "and": lambda n: " and ".join(["a"] * n),
    "or and": lambda n: " or ".join(["a and b"] * n),
    "comparisons": lambda n: " < ".join(["a"] * n),
    "is not": lambda n: " is not ".join(["a"] * n),
    "signs": lambda n: "a" + " + -~+a" * n,
    "powers": lambda n: "a" + "*b**c" * n,
    "conditionals": lambda n: "[" + "a if b else c, " * n + "]",
    "lambdas": lambda n: "[" + "lambda b: b + a, " * n + "]",
    "parameters": lambda n: f"lambda {numbered('p#=a', n, ', ')}: p0",
    "walruses": lambda n: "[" + numbered("(w# := a)", n, ", ") + "]",
    "strings": lambda n: "'a' " * n,
    "strings and f-strings": lambda n: "'a' f'b' " * n,
    "one f-string, then strings": lambda n: "f'a' " + "'b' " * n,
    "fields": lambda n: "f'" + "{a}" * n + "'",
    "fields and text": lambda n: "f'" + "{a} b {{" * n + "'",
    "fields with their text": lambda n: "f'''" + "{a=}\n" * n + "'''",
    "fields with comments": lambda n: "f'''" + "{ # c\na # d\n = # e\n}" * n + "'''",
    "one field with comments": lambda n: "f'''{" + "# c\n" * n + "a=}'''",
    "fields with formats": lambda n: "f'" + "{a!r:{a}>{a}}" * n + "'",
    "escapes": lambda n: "'" + r"\n\x41\u0041\101\N{DIGIT ONE}" * n + "'",
    "doubled braces": lambda n: "f'" + "{{}}" * n + "'",
    "a long string": lambda n: "'" + "a" * n + "'",
    "a long text": lambda n: "'''" + "a'\n\"" * n + "'''",
    "a long number": lambda n: "0x" + "f" * n,
    "a long float": lambda n: "1." + "1" * n,
    "a long exponent": lambda n: "1e" + "1" * n,
    "a long decimal": lambda n: "0_" * min(n, 4000) + "0",
    "a long name": lambda n: "a" * n,
    "a long foreign name": lambda n: "é" * n,
    "numbers": lambda n: "[" + "0x1f, 1.5, 2j, 1_000, " * n + "]",
    "items of a list": lambda n: "[" + "a, " * n + "]",
    "items of a tuple": lambda n: "(" + "a, " * n + ")",
    "items of a set": lambda n: "{" + "a, " * n + "}",
    "items of a dict": lambda n: "{" + "a: b, " * n + "}",
    "unpacked dicts": lambda n: "{" + "**a, " * n + "}",
    "stars": lambda n: "[" + "*a, " * n + "]",
    "arguments": lambda n: "f(" + "a, " * n + ")",
    "keyword arguments": lambda n: f"f({numbered('p#=a', n, ', ')})",
    "keywords, then stars": lambda n: f"f({numbered('p#=a', n, ', ')}, {'*a, ' * n})",
    "comprehensions": lambda n: "[" + "[b for b in a if b], " * n + "]",
    "clauses": lambda n: "[b " + numbered("for b in a", n, " ") + "]",
    "conditions": lambda n: "[b for b in a" + " if b" * n + "]",
    "generators": lambda n: "[" + "sum(b for b in a), " * n + "]",
    "walruses in comprehensions": lambda n: "[" + numbered("[(w# := b) for b in a]", n, ", ") + "]",
    "closed brackets": lambda n: "[" + "([{}])," * n + "]",
    "brackets up to the limit": lambda n: ("[" * 150 + "a" + "]" * 150 + " + ") * (n // 25) + "a",
    "open ends of lines": lambda n: "(" + "\n" * n + "a)",
    "continued lines": lambda n: "\\\n" * n + "a",
    "blanks": lambda n: "(" + " " * n + "a" + " " * n + ")",
}

# Statements, for the module and for a kernel's body.
STATEMENTS: dict[str, Text] = {
    "lines": lambda n: "x = 1\n" * n,
    "statements in a line": lambda n: "x = 1; " * n,
    "names": lambda n: numbered("x# = 1", n),
    "one name after the other": lambda n: "x0 = 1\n" + numbered("x#_ = x#", n),
    "the same name in a circle": lambda n: "x = 1\n" + "x = x + 1\n" * n,
    "targets": lambda n: "x = " * n + "1",
    "targets in a tuple": lambda n: numbered("x#, ", n, "") + "= a",
    "targets in brackets": lambda n: "(" * 90 + numbered("x#, ", n, "") + ")" * 90 + " = a",
    "annotations": lambda n: numbered("x#: int = 1", n),
    "augmented": lambda n: "x = 1\n" + "x += 1\n" * n,
    "changed items": lambda n: "x = {}\n" + numbered("x[#] = 1", n),
    "changed aliases": lambda n: "x = []\ny = x\n" + "y.append(1)\n" * n,
    "deletions": lambda n: "x = 1\ndel " + "x, " * n + "x",
    "elif": lambda n: "if a: b = 1\n" + "elif a: b = 2\n" * n + "else: b = 3",
    "elif that leave": lambda n: (
        "def f():\n  if a: return 1\n" + "  elif a: return 2\n" * n + "  else: return 3\n  return 4"
    ),
    "elif that bind": lambda n: "if a: b = 1\n" + numbered("elif a: x# = 1", n),
    "else if": lambda n: (
        "".join(" " * i + "if a: b = 1\n" + " " * i + "else:\n" for i in range(80))
        + " " * 80
        + "pass\n"
        + "x = 1\n" * n
    ),
    "names in a block": lambda n: "if a:\n" + numbered("  x# = 1", n),
    "functions in a block": lambda n: "if a:\n" + numbered("  def f#(): return 1", n),
    "blocks": lambda n: "if a:\n  pass\nelse:\n  pass\n" * n,
    "for": lambda n: "for i in a:\n  b = i\n" * n,
    "while": lambda n: "while a:\n  break\n" * n,
    "with items": lambda n: "with " + ", ".join(["a as b"] * n) + ": pass",
    "with items in parentheses": lambda n: "with (" + "a as b, " * n + "): pass",
    "with in a line": lambda n: "with (a): " + "b = (1); " * n,
    "cases": lambda n: "match a:\n" + numbered("  case #: pass", n),
    "cases that bind": lambda n: "match a:\n" + numbered("  case [#, x#]: pass", n),
    "alternatives": lambda n: "match a:\n  case " + numbered("#", n, " | ") + ": pass",
    "patterns": lambda n: "match a:\n  case [" + numbered("x#", n, ", ") + "]: pass",
    "keyword patterns": lambda n: "match a:\n  case A(" + numbered("p#=x#", n, ", ") + "): pass",
    "mapping patterns": lambda n: "match a:\n  case {" + numbered("#: x#", n, ", ") + "}: pass",
    "dotted patterns": lambda n: "match a:\n  case a" + ".b" * n + ": pass",
    "handlers": lambda n: "try: pass\n" + "except A: pass\n" * n,
    "decorators": lambda n: "@b\n" * n + "def f(): pass",
    "dotted decorator": lambda n: "@a" + ".b" * n + "\ndef f(): pass",
    "functions": lambda n: numbered("def f#(b): return b + a", n),
    "a function's parameters": lambda n: f"def f({numbered('p#: a = a', n, ', ')}): pass",
    "nested functions over many names": lambda n: (
        numbered("x# = 1", n) + "\n" + numbered("def f#(): return x#", n)
    ),
    "lambdas over many names": lambda n: numbered("x# = 1", n) + "\n" + "y = lambda: x0\n" * n,
    "comprehensions over many names": lambda n: (
        numbered("x# = 1", n) + "\n" + "y = [x0 for z in a]\n" * n
    ),
    "classes": lambda n: numbered("class C#(A):\n  b = 1", n),
    "bases": lambda n: "class C(" + "A, " * n + "): pass",
    "methods": lambda n: "class C(A):\n" + numbered("  def f#(self): return self.f#()", n),
    "dead code": lambda n: "def f():\n  return 1\n" + "  x = 2\n" * n,
    "imports": lambda n: numbered("import nki.m#", n),
    "imported names": lambda n: "from nki.isa import " + numbered("x#", n, ", "),
    "dotted import": lambda n: "import a" + ".b" * n,
    "comments": lambda n: "# comment\n" * n + "pass",
    "a long comment": lambda n: "#" + "c" * n + "\npass",
    "comments behind statements": lambda n: "x = 1  # c\n" * n,
    "empty lines": lambda n: "\n" * n + "pass",
    "asserts": lambda n: "assert a, 'b'\n" * n,
    "names used often": lambda n: "x = 1\n" + "y = x\n" * n,
}

# Constructs that are legal only at the top of a file.
MODULES: dict[str, Text] = {
    "uses of a name bound often": lambda n: in_kernel(
        "\n".join(["b = TABLE"] * n), before="TABLE = 1\n" * n
    ),
    "values that many names share": lambda n: in_kernel(
        "pass", before="x0 = []\n" + "".join(f"x{i + 1} = x{i}\n" for i in range(n))
    ),
    "a value made of others": lambda n: in_kernel(
        f"b = x{n}", before="x0 = 1\n" + "".join(f"x{i + 1} = x{i} + 1\n" for i in range(n))
    ),
    "star imports": lambda n: in_kernel("b = foo", before="from nki.language import *\n" * n),
    "kernels": lambda n: HEAD + numbered("@nki.jit\ndef k#(a): return a", n),
    "made kernels": lambda n: in_kernel("pass", numbered("def g#(a): pass\nh# = nki.jit(g#)", n)),
    "functions that call each other": lambda n: in_kernel(
        "f0()", numbered("def f#(): return f#()", n) + "\ndef f0(): " + numbered("f#()", n, "; ")
    ),
    "functions in a row": lambda n: in_kernel(
        "f0()", "".join(f"def f{i}(): return f{i + 1}()\n" for i in range(n)) + f"def f{n}(): pass"
    ),
    "attributes of a package": lambda n: in_kernel(
        "b = " + numbered("p.x#", n, " + "), "import package as p"
    ),
}


def texts() -> dict[str, Text]:
    """Return every construct by name, as a file with the construct on module level and in a
    kernel.
    """
    expressions = {name: _statement(form) for name, form in EXPRESSIONS.items()}
    both = {name: _in_both(form) for name, form in (expressions | STATEMENTS).items()}
    return {**both, **MODULES}


def _statement(form: Text) -> Text:
    return lambda n: f"x = {form(n)}"


def _in_both(form: Text) -> Text:
    return lambda n: f"{form(n)}\n" + in_kernel(form(n))


def work(action: Callable[[], object]) -> int:
    """Return the number of bytecode instructions that `action` executes, including all called
    functions.
    """
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count
