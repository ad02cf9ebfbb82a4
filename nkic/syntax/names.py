"""Names with a special meaning: builtins, special methods, and inaccessible names.

Kernel code is evaluated in a closed world. In Python, every escape from it needs a name: a builtin
(`open`), a special attribute (`__globals__`) or an attribute of the interpreter's own objects
(`gi_frame`). Restricting names therefore closes it.
"""

from __future__ import annotations


def words(text: str) -> list[str]:
    """Return the words of a table of names."""
    return text.split()


# The names that kernel code may use without an import.
BUILTINS = frozenset(
    words("""
    False None True Ellipsis NotImplemented __debug__
    abs all any ascii bin bool bytes callable chr delattr dict divmod enumerate filter float
    format frozenset getattr hasattr hash hex int isinstance issubclass iter len list map max min
    next object oct ord pow print property range repr reversed round set setattr slice sorted
    staticmethod classmethod str sum super tuple type zip
    ArithmeticError AssertionError AttributeError BaseException BufferError DeprecationWarning
    EOFError Exception FileNotFoundError FloatingPointError FutureWarning ImportError IndexError
    KeyError LookupError MemoryError ModuleNotFoundError NameError NotImplementedError OSError
    OverflowError RecursionError RuntimeError RuntimeWarning StopAsyncIteration StopIteration
    SyntaxError SystemError TimeoutError TypeError UnboundLocalError UnicodeDecodeError
    UnicodeEncodeError UnicodeError UserWarning ValueError Warning ZeroDivisionError
    """)
)

# Only in Beta 2: the memories in which tensors are allocated.
MEMORIES = ("sbuf", "psum", "hbm")

_FILES = "a kernel is compiled from its source and arguments alone, and cannot use files"
_CODE = "kernel source is compiled as it is; pass functions, or choose with `if`"
_INSIDE = "keep the values you need in variables, a dict or a class"

# Python builtins that NKI lacks, with their alternatives.
REFUSED_BUILTINS = {
    **dict.fromkeys(("open", "input"), _FILES),
    **dict.fromkeys(("eval", "exec", "compile", "__import__"), _CODE),
    **dict.fromkeys(("globals", "locals", "vars", "dir"), _INSIDE),
    "id": "compare values with `==`: addresses differ from one compilation to the next",
    "breakpoint": "use `print`: it shows compile-time values",
    "complex": "NKI has no complex numbers: keep the real and imaginary parts in two tensors",
    **dict.fromkeys(("bytearray", "memoryview"), "use a list of integers, or `bytes`"),
    **dict.fromkeys(("aiter", "anext"), "use a `for` loop"),
    **dict.fromkeys(("exit", "quit"), "use `assert` to stop the compilation"),
    **dict.fromkeys(("SystemExit", "KeyboardInterrupt"), "use `assert` to stop the compilation"),
    "GeneratorExit": "use `finally`: it runs when a generator is closed",
}

# Names that files customarily import, with the import statement.
_CUSTOMARY = {
    "nki": "import nki",
    "nl": "import nki.language as nl",
    "nisa": "import nki.isa as nisa",
    "ncc": "import nki.collectives as ncc",
    "np": "import numpy as np",
    "math": "import math",
    "partial": "from functools import partial",
    "reduce": "from functools import reduce",
    "dataclass": "from dataclasses import dataclass",
    "field": "from dataclasses import field",
    "Enum": "from enum import Enum",
    "NKIObject": "from nki.language import NKIObject",
}
# Memories, which the first examples of NKI Beta 2 use as predefined names.
_MEMORIES = frozenset({"sbuf", "psum", "hbm", "shared_hbm", "private_hbm"})


def customary(name: str) -> str:
    """Return advice on an undefined name whose import was probably forgotten, or ""."""
    if name in _MEMORIES:
        creation = f"nl.ndarray(shape, dtype=dtype, buffer=nl.{name})"
        return (
            f"write `nl.{name}`; `{creation}` is what examples of NKI Beta 2 write as `{name}.view`"
        )
    line = _CUSTOMARY.get(name)
    return f"write `{line}` at the top of the file" if line else ""


_OPERATORS = words("add sub mul truediv floordiv mod divmod pow lshift rshift and or xor matmul")
_BINARY = frozenset(f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i"))
# Special methods that a kernel's class may define and call by name.
SPECIAL_METHODS = _BINARY | frozenset(
    f"__{name}__"
    for name in words("""
        abs bool bytes call ceil class_getitem contains delattr delete delitem enter eq exit float
        floor format ge get getattr getitem gt hash index init init_subclass int invert iter
        le len length_hint lt missing ne neg new next pos post_init repr reversed round set
        set_name setattr setitem str trunc
    """)
)
# Further special attributes that kernel code may read: their values are plain text, or functions,
# classes and exceptions of the kernel itself.
_READABLE = frozenset(
    f"__{name}__"
    for name in words("""
        bases cause class context doc func members module mro name notes qualname self slots
        match_args suppress_context wrapped
    """)
)
# Special names that a class body or module may assign.
ASSIGNABLE = frozenset(
    {"__slots__", "__all__", "__name__", "__match_args__", "__doc__", "__annotations__"}
)
# Object attributes of the interpreter: frames, code, tracebacks, generators, types.
_INTERPRETER = frozenset(
    words("""
    gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await cr_origin ag_frame ag_code ag_await
    f_back f_builtins f_code f_globals f_lasti f_lineno f_locals f_trace f_trace_lines
    f_trace_opcodes f_generator tb_frame tb_next tb_lasti tb_lineno
    func_globals func_code func_closure im_func im_self im_class
    """)
)


def is_special(name: str) -> bool:
    """Whether a name has two underscores on both sides: `__name__`."""
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def is_hidden(attribute: str) -> bool:
    """Whether kernel code may not read this attribute of any object."""
    if is_special(attribute):
        return attribute not in _READABLE and attribute not in SPECIAL_METHODS
    return attribute in _INTERPRETER or attribute.startswith("co_")


def may_define(method: str) -> bool:
    """Whether a class may define this method."""
    return not is_special(method) or method in SPECIAL_METHODS


def instead_of(attribute: str) -> str:
    """Return the alternative to a hidden attribute."""
    return _INSTEAD.get(attribute, "use the public methods and fields of the object")


_INSTEAD = {
    "__dict__": "name the fields you need; `dataclasses.fields` lists those of a dataclass",
    "__len__": "use `len(x)`",
    "__getattribute__": "define `__getattr__`: it is called for missing attributes",
    "__subclasses__": "list the classes yourself",
    "__import__": "write an import statement at the top of the file",
    "__del__": "nothing is freed while a kernel is compiled; remove it",
}
