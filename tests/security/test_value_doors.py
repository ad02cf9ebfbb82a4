"""Python's own repr, hash, `==`, `in`, sorted and copy see kernels' values in few, reviewed places.

They recurse on the C stack and cost what nobody counts. The interpreter has one door for each
(`Machine.repr`, `check_key`, `equal`, `contains`, `sort_values`, `copy_set`, `copy_dict`); the
functions of the language get only what `border.admit` has measured. A new use outside of them fails
here: call the door, or add the place with the reason why the value is harmless.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

NKIC = Path(__file__).resolve().parents[2] / "nkic"
ROOMS = ("interpret", "language")
FUNCTIONS = {"repr", "str", "hash", "sorted", "min", "max", "format", "set", "frozenset"}
METHODS = {"copy", "index", "count", "remove", "sort", "union", "fromkeys"}
TYPES = {"dict", "list", "set", "frozenset", "str", "bytes", "tuple", "kind"}
# Attributes of objects that hold values of kernels, and functions that pass them on.
HOLDERS = {"fields", "args", "value", "owner", "function", "start", "stop", "step", "parts"}
PASSING = {"items", "values", "keys", "get", "pop", "__iter__", "__getitem__"}
MAKING = {"call", "iterate", "to_list", "unpack", "attribute"}  # of the machine
PASSING_FUNCTIONS = {"list", "tuple", "iter", "zip", "reversed", "next", "enumerate"}

# What is behind the doors, or is no value of a kernel: (file, function): reason.
KEYS = "names of keyword arguments, which are strings paid for by `keyword_mapping`"
ADMITTED = "an argument of the language, which the border has measured"
REVIEWED = {
    ("interpret/attributes.py", "public_names"): "the keys of fields are strings",
    ("interpret/builtins.py", "_extremum"): "two plain numbers",
    ("interpret/classes.py", "_values"): KEYS,
    ("interpret/classes.py", "note_slots"): "checked to be strings",
    ("interpret/compare.py", "equal"): "the door: both are flat, texts are paid for",
    ("interpret/compare.py", "_dicts"): "the door: after `check_keys`",
    ("interpret/compare.py", "contains"): "the door: flat, or after `check_key`",
    ("interpret/compare.py", "_check_tuple"): "a plain integer",
    ("interpret/compare.py", "hash_key"): "the door: after `check_key`",
    ("interpret/compare.py", "_stable_hash"): "the door: after `check_key`",
    ("interpret/compile/statements.py", "matches"): "after `check_key`",
    ("interpret/containers.py", "copy_dict"): "the door: after `check_keys`",
    ("interpret/containers.py", "merge_pairs"): "an index",
    ("interpret/library/functions.py", "_assigned"): "texts of three words",
    ("interpret/library/forms.py", "_replace"): KEYS,
    ("interpret/library/forms.py", "make_class"): "names of a class body",
    ("interpret/library/__init__.py", "_content"): "a class of Python",
    ("interpret/library/dataclasses.py", "dataclass"): KEYS,
    ("interpret/library/dataclasses.py", "_call_post_init"): "sorted by numbers",
    ("interpret/library/dataclasses.py", "call"): "the name of an attribute, a string",
    ("interpret/library/enums.py", "_subclass"): "names of a class body",
    ("interpret/library/enums.py", "_functional"): KEYS,
    ("interpret/library/enums.py", "one_more"): "integers, paid for before",
    ("interpret/library/enums.py", "_show_boundary"): "the name of a shared object",
    ("interpret/library/maths.py", "_bits"): "integers",
    ("interpret/library/support.py", "checked_methods"): "names of methods",
    ("interpret/texts.py", "text"): "the door: flat values, and texts that are paid for",
    ("interpret/texts.py", "_literal"): "the door: numbers, and texts that are paid for",
    ("interpret/texts.py", "_other"): "the door: values of the language, which hold no others",
    ("interpret/texts.py", "brief"): "numbers and texts, where there is no machine",
    ("interpret/texts.py", "named"): "names of fields",
    ("interpret/texts.py", "_formatted_base"): "the door: numbers, texts, and a checked width",
    ("interpret/texts.py", "get_value"): "a number",
    ("interpret/types/text.py", "lines"): "texts",
    ("interpret/types/text.py", "_count"): "texts that are paid for",
    ("interpret/types/__init__.py", "_remove_list_item"): "indices",
    ("interpret/types/functions.py", "_delattr"): "a checked name",
    ("interpret/types/sequences.py", "_pop"): "an index",
    ("interpret/types/sequences.py", "_find"): "flat, and paid for",
    ("interpret/types/sequences.py", "count"): "flat, and paid for",
    ("interpret/types/sequences.py", "_copy"): "a list, whose elements are not looked at",
    ("interpret/types/sequences.py", "sort_values"): "the door: sort keys that count",
    ("interpret/types/text.py", "join"): "an index",
    ("interpret/types/text.py", "_codec"): "a checked name",
    ("language/beta1/emit.py", "_overwrites_input"): "views of tensors",
    ("language/binder.py", "_missing"): "names of parameters",
    ("language/binder.py", "_bind"): KEYS,
    ("language/collectives.py", "_pending"): "a name in the instruction table",
    ("language/enums.py", "_wrong_call"): KEYS,
    ("language/provide.py", "_elsewhere"): "names of a module",
    ("language/versions.py", "without_later"): "names of a module",
    **{
        (f"language/{file}.py", function): ADMITTED
        for file, functions in {
            "beta1/creation": "_sizes",
            "beta1/indices": "reshape _not_affine",
            "beta1/isa": "reduced_axes",
            "beta1/masks": "as_mask",
            "beta1/more": "_axes_of_grid",
            "beta1/names": "jit",
            "beta1/operators": "check",
            "beta1/tiles": "assert_shape",
            "binder": "_choice _operator shown",
            "collectives": "_channel_ids _bound",
            "creation": "_sizes as_address data_of",
            "dtypes_api": "as_dtype _no_dtype as_buffer",
            "grids": "_bounds",
            "indexing": "_single",
            "jit": "check_option",
            "loops": "_bound",
            "views": "_sizes",
        }.items()
        for function in functions.split()
    },
}


class Uses(ast.NodeVisitor):
    """The uses of Python's operations on values of kernels: parameters annotated with `Any`."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, int]] = []
        self._values: list[set[str]] = [set()]
        self._names: list[str] = [""]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit a function with the names of kernels' values in it."""
        arguments = node.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        given += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
        values = {a.arg for a in given if _is_any(a.annotation) and a.arg not in ("m", "self")}
        self._values.append(self._values[-1] | values)
        self._names.append(node.name)
        for _ in range(2):  # what loops and assignments pass on
            self._spread(node)
        self.generic_visit(node)
        self._values.pop()
        self._names.pop()

    def _spread(self, function: ast.FunctionDef) -> None:
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                source = node.value
            elif isinstance(node, ast.For | ast.comprehension):
                targets, source = [node.target], node.iter
            else:
                continue
            if source is not None and self._is_value(source):
                names = (name for target in targets for name in ast.walk(target))
                self._values[-1] |= {
                    n.id for n in names if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                }

    def _is_value(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._values[-1]
            case ast.Attribute(value=owner, attr=name):
                return name in HOLDERS and self._is_value(owner)
            case ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self._is_value(inner)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return any(map(self._is_value, parts))
            case ast.IfExp(body=first, orelse=second):
                return self._is_value(first) or self._is_value(second)
            case ast.BoolOp(values=parts):
                return any(map(self._is_value, parts))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="m"), attr=name)) if name in MAKING:
                return True
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args):
                return name in PASSING and any(map(self._is_value, [owner, *args]))
            case ast.Call(func=ast.Name(id=name), args=args):
                return name in PASSING_FUNCTIONS and any(map(self._is_value, args))
        return False

    def _note(self, node: ast.expr) -> None:
        self.found.append((self._names[-1], ast.unparse(node), node.lineno))

    def visit_Call(self, node: ast.Call) -> None:
        """Note calls such as `repr(value)`, `value.copy()` and `dict.copy(value)`."""
        match node.func:
            case ast.Name(id=name) if name in FUNCTIONS and any(map(self._is_value, node.args)):
                self._note(node)
            case ast.Attribute(value=owner, attr=name) if name in METHODS:
                unbound = isinstance(owner, ast.Name) and owner.id in TYPES
                if self._is_value(owner) or (unbound and any(map(self._is_value, node.args))):
                    self._note(node)
        self.generic_visit(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> None:
        """Note `{value}` and `{value!r}` in f-strings."""
        if self._is_value(node.value):
            self._note(node.value)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Note `value == other` and `value in others`; literals cost nothing to compare with."""
        sides = [node.left, *node.comparators]
        for symbol, left, right in zip(node.ops, sides, sides[1:], strict=False):
            literal = isinstance(left, ast.Constant) or isinstance(right, ast.Constant)
            equality = isinstance(symbol, ast.Eq | ast.NotEq) and not literal
            membership = isinstance(symbol, ast.In | ast.NotIn) and self._is_value(left)
            if membership or (equality and (self._is_value(left) or self._is_value(right))):
                self._note(node)
        self.generic_visit(node)


def _is_any(annotation: ast.expr | None) -> bool:
    text = ast.unparse(annotation) if annotation is not None else ""
    return "Any" in text and not text.startswith(("Callable", "type", "Iterator"))


def uses(text: str) -> list[tuple[str, str, int]]:
    finder = Uses()
    finder.visit(ast.parse(text))
    return finder.found


def all_uses() -> Iterator[tuple[str, str, str, int]]:
    for room in ROOMS:
        for path in sorted((NKIC / room).rglob("*.py")):
            for function, code, line in uses(path.read_text(encoding="utf-8")):
                yield path.relative_to(NKIC).as_posix(), function, code, line


def test_values_go_through_the_doors() -> None:
    others = [
        f"nkic/{file}:{line}: {code}, in {function}"
        for file, function, code, line in all_uses()
        if (file, function) not in REVIEWED
    ]
    assert others == []


def test_every_reviewed_place_exists() -> None:
    assert REVIEWED.keys() - {(file, function) for file, function, _, _ in all_uses()} == set()


@pytest.mark.parametrize(
    "code",
    [
        "repr(value)",
        "f'{value!r}'",
        "f'{value}'",
        "hash((1, value))",
        "value == other",
        "value in TABLE",
        "sorted(value)",
        "value.copy()",
        "list.index(TABLE, value)",
        "dict.fromkeys(value.fields)",
        "[part == other for part in value]",
        "max(v for v in [hash(value)])",
    ],
)
def test_a_new_use_is_found(code: str) -> None:
    assert uses(f"def function(m, value: Any, other: Any):\n    return {code}\n")
