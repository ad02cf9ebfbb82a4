"""Errors for using the value of a tensor at compile time, when it is unknown.

Python tests "is there a tensor?" and "is this value true?" with the same syntax, and a kernel may
test the former. But the results of arithmetic, comparisons and reductions always exist, and so do
parts of tensors: testing one of these means its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from nkic.base.diagnostics import Label
from nkic.base.kernel_errors import KernelError
from nkic.base.profiles import Profile
from nkic.base.source import Span
from nkic.ir.tensors import Tensor, View
from nkic.language import library
from nkic.language.complain import shown
from nkic.language.tensors.views import whole
from nkic.language.trace import active, here
from nkic.syntax import nodes
from nkic.syntax.bindings import STDLIB, SourceModule
from nkic.syntax.walk import walk

UNKNOWN = "not known while the kernel is compiled"
_COMPUTING_FILES = tuple(f"{STDLIB}{name}.py" for name in ("elementwise", "reduction", "matmul"))
_MAX_QUOTE = 40  # characters of the kernel's source quoted in a help text


def is_computed(view: View) -> bool:
    """Return whether the view is a result of `nki.language` or a part of a tensor."""
    if view.tensor.number in active().computed:
        return True
    return view != whole(view.tensor) or view.tensor.at.span.path in _COMPUTING_FILES


def undecided(view: View) -> KernelError:
    """Return the error for a decision that depends on a tensor's values: the first cause of errors
    about how the condition is computed.
    """
    active().report.withdraw(here().primary)
    text = f"the values of {_quoted_names(view)} are {UNKNOWN}, so no decision can depend on them"
    return _error(view, text, _advice(view))


def no_number(view: View) -> KernelError:
    """Return the error for converting a tensor to a number."""
    text = f"{_quoted_names(view)} cannot be converted to a number: its values are {UNKNOWN}"
    consumer = _consumer()
    name = _callee(consumer.node) if consumer is not None else ""
    if name in library.public() and active().profile >= Profile.NKI_0_3:
        return _error(view, text, f"nl.{name} computes it for every element")
    help = "compute with `nl` functions or `nisa` instructions, or give the kernel the number"
    return _error(view, text, f"{help} as an argument")


def no_loop(view: View) -> KernelError:
    """Return the error for iterating over a tensor."""
    text = f"{_quoted_names(view)} cannot be iterated: its values are {UNKNOWN}"
    consumer = _consumer()
    advice = _advise_call(consumer, view) if consumer is not None else ""
    index = "loop over `range(t.shape[i])` and index the tensor"
    return _error(view, text, advice or index)


def no_array(view: View) -> KernelError:
    """Return the error for making a NumPy array of a tensor."""
    text = f"{_quoted_names(view)} cannot be converted to an array: its values are {UNKNOWN}"
    return _error(view, text, "compute with `nl` functions or `nisa` instructions")


def with_array(view: View) -> KernelError:
    """Return the error for an operation with a NumPy array."""
    names = _quoted_names(view)
    text = f"a NumPy array cannot be combined with {names}, whose values are {UNKNOWN}"
    return _error(view, text, "pass the array to the kernel as an argument")


def no_ufunc(view: View, name: str) -> KernelError:
    """Return the error for a scalar NumPy function of a tensor."""
    return undecided(view) if name in ("maximum", "minimum") else no_number(view)


def no_array_function(view: View, function: str) -> KernelError:
    """Return the error for a function of NumPy or PyTorch of a tensor: `numpy.sum`."""
    text = f"`{function}` does not take {_quoted_names(view)}: its values are {UNKNOWN}"
    instead = library.as_function(function.rpartition(".")[2], len(view.shape))
    return _error(view, text, instead or "compute with `nl` functions or `nisa` instructions")


def _error(view: View, text: str, help: str) -> KernelError:
    return KernelError(
        "tensor-value", text, help=help, labels=list(_labels(_named_inputs(view.tensor)))
    )


def _named_inputs(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return the tensor, or the tensors with names in the source from which it was computed."""
    return active().computed.get(tensor.number) or (tensor,)


def _quoted_names(view: View) -> str:
    names = dict.fromkeys(f"`{_display_name(tensor)}`" for tensor in _named_inputs(view.tensor))
    return " and ".join(names)


def _display_name(tensor: Tensor) -> str:
    """Return the tensor's name, or the source text of the expression that made it."""
    span = tensor.at.primary
    module = active().module_of(span.path)
    if tensor.at.span.path not in _COMPUTING_FILES or active().name_of(tensor.at) or module is None:
        return tensor.name
    return _short_text(module, span) or tensor.name


def _labels(tensors: Iterable[Tensor]) -> Iterable[Label]:
    for tensor in dict.fromkeys(tensors):
        yield Label(tensor.at.primary, f"`{_display_name(tensor)}` is {shown(tensor)}")


def computed(result: View, *operands: View) -> None:
    """Record the named tensors from which an operator computed `result`."""
    computed_from = active().computed
    inputs = tuple(
        t for view in operands for t in computed_from.get(view.tensor.number, (view.tensor,))
    )
    computed_from[result.tensor.number] = tuple(dict.fromkeys(inputs))


# ---- help texts, by the syntax around the expression ---------------------------------------------


class _Consumer(NamedTuple):
    """The expression or statement that needs a value, and its source file."""

    node: nodes.Node
    module: SourceModule


def _consumer() -> _Consumer | None:
    """Return the innermost node around the current expression that needs its value."""
    span = here().primary
    module = active().module_of(span.path)
    statement = module.statement_at(span) if module is not None else None
    if module is None or statement is None:
        return None
    enclosing = [
        node for node in walk(statement) if type(node) in _DECIDING and _needs_value_at(span, node)
    ]
    return _Consumer(enclosing[-1], module) if enclosing else None


def _needs_value_at(span: Span, node: nodes.Node) -> bool:
    """Return whether the node needs the value at `span`; a call needs its own result."""
    if isinstance(node, nodes.Call):
        return node.span == span and _is_foreign(node.func)
    if isinstance(node, nodes.UnaryOp) and node.op != "not":
        return False
    if isinstance(node, nodes.Compare) and len(node.ops) == 1 and "in" not in node.ops[0]:
        return False
    return node.span[1:3] <= span[1:3] and span[3:] <= node.span[3:]


def _is_foreign(function: nodes.Expression) -> bool:
    """Return whether a function is Python's or NumPy's; those of `nki.language` compute tensors."""
    holder = function.value if isinstance(function, nodes.Attribute) else None
    return not (isinstance(holder, nodes.Name) and holder.id == "nl")


def _advice(view: View) -> str:
    """Return a help text for the current expression."""
    consumer = _consumer()
    if consumer is None:
        return _advise_where("condition", "a", "b")
    if isinstance(consumer.node, nodes.Call):
        return _advise_call(consumer, view) or _advise_where("condition", "a", "b")
    return _ADVICE[type(consumer.node)](consumer)


def _advise_where(condition: str, if_true: str, if_false: str) -> str:
    if active().profile < Profile.NKI_0_3:
        return "choose element by element with nisa.select_reduce"
    return f"choose element by element: `nl.where({condition}, {if_true}, {if_false})`"


def _advise_if(consumer: _Consumer) -> str:
    assert isinstance(consumer.node, nodes.If)
    advice = _advise_where(_text(consumer, consumer.node.test, "condition"), "a", "b")
    return f"{advice}; `if` decides by shapes, dtypes and numbers that are arguments"


def _advise_ifexp(consumer: _Consumer) -> str:
    node = consumer.node
    assert isinstance(node, nodes.IfExp)
    texts = zip((node.test, node.body, node.orelse), ("condition", "a", "b"), strict=True)
    return _advise_where(
        *(_text(consumer, expression, otherwise) for expression, otherwise in texts)
    )


def _advise_boolop(consumer: _Consumer) -> str:
    assert isinstance(consumer.node, nodes.BoolOp)
    operands = consumer.node.values[:2]
    left, right = (_text(consumer, p, n) for p, n in zip(operands, "ab", strict=True))
    return f"write `nl.logical_{consumer.node.op}({left}, {right})`, which works on every element"


def _advise_not(consumer: _Consumer) -> str:
    assert isinstance(consumer.node, nodes.UnaryOp)
    text = _text(consumer, consumer.node.operand, "condition")
    return f"write `nl.logical_not({text})`, which works on every element"


def _advise_compare(consumer: _Consumer) -> str:
    node = consumer.node
    assert isinstance(node, nodes.Compare)
    if "in" in node.ops[0]:
        return _SAME
    operands = (node.left, *node.comparators)
    texts = [
        _text(consumer, operand, name) for operand, name in zip(operands, "abcdefgh", strict=False)
    ]
    left, right = (f"{texts[n]} {node.ops[n]} {texts[n + 1]}" for n in (0, 1))
    return f"write `nl.logical_and({left}, {right})`: a chain decides after its first part"


def _advise_while(consumer: _Consumer) -> str:
    load = "load the condition into a register with nisa.register_load"
    if active().profile < Profile.NKI_0_6:
        return f"{load}, and write `while register:`, a loop on the device"
    return f"{load}, and loop on the device: `nl.while_loop(register, body)`"


def _advise_assert(consumer: _Consumer) -> str:
    return "assert only what is known now: shapes, dtypes, numbers; nl.device_print shows values"


def _advise_call(consumer: _Consumer, view: View) -> str:
    """Return a replacement for the call over the tensor's free dimensions, or ""."""
    advice = _CALL_ADVICE.get(_callee(consumer.node), "")
    return advice.format(axis=library.free_axes(len(view.shape)))


def _callee(node: nodes.Node) -> str:
    """Return the last part of the callee's name."""
    function = node.func if isinstance(node, nodes.Call) else None
    if isinstance(function, nodes.Attribute):
        return function.attr
    return function.id if isinstance(function, nodes.Name) else ""


def _text(consumer: _Consumer, node: nodes.Node, otherwise: str) -> str:
    """Return the node's source text if it is short."""
    return _short_text(consumer.module, node.span) or otherwise


def _short_text(module: SourceModule, span: Span) -> str:
    text = module.source.text_of(span)
    return text if len(text) <= _MAX_QUOTE and "\n" not in text else ""


_SAME = "use `is` to test whether it is the same tensor; nl.equal compares elements"
_LARGER = "use nl.maximum(x, y) for the larger of two elements, nl.max(x, {axis}) for that of a row"
_SMALLER = (
    "use nl.minimum(x, y) for the smaller of two elements, nl.min(x, {axis}) for that of a row"
)
_ORDER = "nisa.max8 finds the eight largest elements of each partition, in order"
_CALL_ADVICE = {
    **dict.fromkeys(("max", "maximum"), _LARGER),
    **dict.fromkeys(("min", "minimum"), _SMALLER),
    **dict.fromkeys(("sorted", "sort"), _ORDER),
    **dict.fromkeys(("index", "count", "remove"), _SAME),
    "sum": "use nl.sum(x, {axis})",
    "all": "use nl.all(x, {axis})",
    "any": "use nl.max(x, {axis}) of a comparison",
    "bool": "`x is not None` tests whether there is a tensor",
}
_ADVICE: dict[type, Callable[[_Consumer], str]] = {
    nodes.If: _advise_if,
    nodes.IfExp: _advise_ifexp,
    nodes.BoolOp: _advise_boolop,
    nodes.UnaryOp: _advise_not,
    nodes.Compare: _advise_compare,
    nodes.While: _advise_while,
    nodes.Assert: _advise_assert,
}
_DECIDING = frozenset({*_ADVICE, nodes.Call})
