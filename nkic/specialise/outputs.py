"""The outputs of the program: the kernel's results, and the inputs that it updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from nkic.base.diagnostics import Label
from nkic.base.profiles import Profile
from nkic.base.source import Span
from nkic.base.text import clean
from nkic.language import views
from nkic.language.collectives import check_triggered
from nkic.language.creation import refuse_written
from nkic.language.hosted import plain
from nkic.language.tensor import NkiTensor
from nkic.language.trace import POISON, Trace, shown
from nkic.machine.dtypes import DTYPES, DType
from nkic.machine.targets import Buffer
from nkic.program.program import Instruction, Program, Returned, Tensor, TensorParameter, View
from nkic.source import nodes, scopes
from nkic.source.bindings import Kernel
from nkic.source.nodes import walk
from nkic.specialise.request import Request

# ------------------------------------------------------------------------------------------------
# Descriptors of transfers that are prepared before the run, so that no engine makes them.
# `--disable-dge` of the vendor's compiler asks for it, and so do the public harnesses of Beta 1's
# kernels: published times of those with many small loads are less than triggers of the hardware
# would take. That every kernel of Beta 1 is compiled so, unless `dge` says otherwise, is assumed.


def prepare(trace: Trace) -> None:
    """Have descriptors prepared for each transfer without a mode and without run-time addresses."""
    for body in trace.bodies:
        for index, item in enumerate(body):
            if isinstance(item, Instruction) and _is_open(item):
                attributes = list(item.attributes)
                attributes[item.row.attribute_index["dge_mode"]] = "none"
                body[index] = item._replace(attributes=tuple(attributes))


def _is_open(item: Instruction) -> bool:
    """Return whether the mode of the transfer is left open, and its addresses are known."""
    if "dge_mode" not in item.row.attribute_index or item.attribute("dge_mode") != "unknown":
        return False
    views = (operand for operand in item.operands if isinstance(operand, View))
    return all(view.dynamic is None for view in views)


class Outputs:
    """Collects and checks results.

    Errors point to the returned expression if the kernel has a single `return`, else to its name.
    """

    def __init__(self, trace: Trace, inputs: tuple[TensorParameter, ...], kernel: Kernel) -> None:
        self.trace = trace
        self.inputs = inputs
        self.kernel = kernel.name
        self.node = kernel.node
        self.at = kernel.node.name_span
        self.returned_spans = _returned(kernel.node)
        self.returned: tuple[Tensor, ...] | None = None
        self.form: Returned = None
        self.views: dict[int, View] = {}

    def take(self, result: Any) -> None:
        """Check the result of one instance, which has ended: all must return the same tensors."""
        check_triggered(self.trace)
        values = result if isinstance(result, tuple | list) else (result,)
        if self.trace.profile is Profile.BETA1:
            values = tuple(map(self._copied_to_hbm, values))
        self.form = _form(result)
        tensors = () if result is None else tuple(self._tensors(values))
        if self.returned is not None and tensors != self.returned:
            self._error("the instances of the grid return different tensors")
        self.returned = tensors

    def _copied_to_hbm(self, value: Any) -> Any:
        """Copy a tile that a kernel of Beta 1 returns to HBM, as Beta 1's simulator does."""
        if not isinstance(value, NkiTensor) or not value._access.tensor.on_chip:
            return value
        from nkic.language.beta1 import moving  # imported lazily: rarely needed

        return moving.copied_to_hbm(value)

    def program(self, arguments: dict[str, str], request: Request) -> Program:
        """Return the recorded program; `arguments` are the kernel's, for `nki-run inspect`."""
        trace = self.trace
        if trace.profile is Profile.BETA1:
            from nkic.language.beta1 import passes, recorded

            recorded.finish(trace)
            passes.rename(trace)
            passes.multiply(trace)
            passes.fit(trace, self.at)
        if not request.may_generate_descriptors:
            prepare(trace)
        outputs = self.parameters()
        refuse_written([trace.tensors[n] for n in trace.constants], trace.written)
        return Program(
            name=self.kernel,
            target=trace.target,
            tensors=tuple(trace.tensors),
            inputs=self.inputs,
            outputs=outputs,
            cores=trace.cores,
            constants=trace.constants,
            messages=tuple(trace.messages),
            arguments=arguments,
            returned=self.form,
            reads=trace.reads,
            lacks_grid=trace.lacks_grid,
        )

    def parameters(self) -> tuple[TensorParameter, ...]:
        """Return the program's outputs: the results, then the inputs that were updated."""
        returned = self.returned or ()
        for tensor in returned:
            _take_shape(tensor, self.views[tensor.number])
        written = self.trace.written
        results = [TensorParameter(f"output_{n}", tensor) for n, tensor in enumerate(returned)]
        names = {p.name for p in results}
        updated = [p for p in self.inputs if p.tensor.number in written and p.name not in names]
        if not self.trace.report.errors:
            self._warn(returned)
        return (*results, *updated)

    # Results

    def _tensors(self, values: Sequence[Any]) -> Iterator[Tensor]:
        seen: list[Tensor] = []
        for number, value in enumerate(values):
            tensor = self._tensor(number, value)
            if tensor is None:
                continue
            if tensor in seen:
                self._error(f"output {number} is {tensor.name} again", number, tensor=tensor)
            seen.append(tensor)
            yield tensor

    def _tensor(self, number: int, value: Any) -> Tensor | None:
        output = f"output {number}"
        if not isinstance(value, NkiTensor):
            nested = isinstance(value, tuple | list)
            kind = f"a nested {type(value).__name__}" if nested else repr(value)
            help = (
                "return only tensors; other values are known to the caller, or can be computed "
                "there"
            )
            self._error(f"{output} is {kind}, not a tensor", number, help)
            return None
        view = value._access
        tensor = view.tensor
        if tensor.number == POISON:
            return None
        problem, advice = self._problem(view)
        if problem:
            self._error(f"{output} is {problem}", number, advice, tensor)
            return None
        self.views[tensor.number] = view
        return tensor

    def _problem(self, view: View) -> tuple[str, str]:
        tensor = view.tensor
        if tensor.buffer is Buffer.PSUM:
            first = "copy it to SBUF with nisa.tensor_copy, and that"
            return shown(tensor), f"{first} to a tensor in nl.shared_hbm with nisa.dma_copy"
        if tensor.buffer.on_chip:
            return shown(tensor), "copy it to a tensor in nl.shared_hbm with nisa.dma_copy"
        if tensor.buffer is Buffer.HBM and self.trace.profile >= Profile.NKI_0_3:
            return (
                f"{shown(tensor)}, which only the kernel can access",
                "allocate it with buffer=nl.shared_hbm",
            )
        if view.offset or view.dynamic or not views.is_contiguous(view) or not _is_all(view):
            return (
                f"a part of {shown(tensor)}, or its elements in another order",
                "copy it to another tensor, and return that",
            )
        if (view.shape, view.dtype) != (tensor.shape, tensor.dtype) and self._is_input(tensor):
            return f"the input {tensor.name} in another shape or dtype", "return it unchanged"
        return "", ""

    def _is_input(self, tensor: Tensor) -> bool:
        return any(p.tensor is tensor for p in self.inputs)

    def _span_of(self, number: int) -> Span:
        """Return the span of output `number` in the return statement."""
        is_located = len(self.returned_spans) > number
        return self.returned_spans[number] if is_located else [*self.returned_spans, self.at][0]

    def _error(
        self, text: str, number: int = 0, help: str = "", tensor: Tensor | None = None
    ) -> None:
        labels = [Label(tensor.at.primary, "allocated here")] if tensor is not None else []
        self.trace.report.error(
            "bad-return",
            f"kernel `{self.kernel}` must return tensors in shared HBM; {text}",
            self._span_of(number),
            labels=labels,
            help=help,
        )

    # Warnings

    def _warn(self, returned: tuple[Tensor, ...]) -> None:
        warning, written = self.trace.report.warning, self.trace.written
        for number, tensor in enumerate(returned):
            if tensor.number in written or tensor.number in self.trace.constants:
                continue
            if self._is_input(tensor):
                text = f"output {number} is the input `{tensor.name}`, which nothing writes"
                at = self._span_of(number)
                warning("input-returned", text, at, help="remove it from the return statement")
            else:
                text = f"`{tensor.name}` is returned as output {number} and never written"
                help = "write it, or remove it from the return statement"
                warning("output-not-written", text, tensor.at.primary, help=help)
        shared = [t for t in self.trace.tensors if t.buffer is Buffer.SHARED_HBM]
        for tensor in shared:
            if self._is_forgotten(tensor) and tensor not in returned:
                text = f"`{tensor.name}` is written in shared HBM, but neither read nor returned"
                help = "return it, or remove the copy"
                warning("output-not-returned", text, tensor.at.primary, help=help)
        for name, tensor in self.inputs:
            is_read = tensor.number in self.trace.read or tensor.number in written
            if not is_read and tensor not in returned and not self._is_mentioned(name):
                text = f"input `{name}` is never read: the kernel does not use it"
                warning("input-not-read", text, tensor.at.primary, help="use it, or remove it")

    def _is_mentioned(self, name: str) -> bool:
        """Return whether the kernel names a parameter: it may need no more than its shape, or pass
        it on to a function that does not always read it.
        """
        names = (node.id for node in walk(self.node) if isinstance(node, nodes.Name))
        return name not in {arg.name for arg in scopes.parameters(self.node.args)} or name in names

    def _is_forgotten(self, tensor: Tensor) -> bool:
        number, trace = tensor.number, self.trace
        own = not self._is_input(tensor)
        return own and number in trace.written and number not in trace.read


def _take_shape(tensor: Tensor, view: View) -> None:
    """Give a result the shape of the view that the kernel returns: a reshape of the whole tensor.

    Call this only when no further instance declares the tensor with its original shape.
    """
    tensor.shape, tensor.dtype, tensor.free = view.shape, view.dtype, prod(view.shape)


def _returned(kernel: nodes.FunctionDef) -> list[Span]:
    """Return the spans of the outputs in the only `return` of a kernel; one if not a tuple."""
    returns = [n for n in scopes.nodes_in_scope(kernel.body) if isinstance(n, nodes.Return)]
    value = returns[0].value if len(returns) == 1 else None
    if value is None:
        return []
    expressions = value.elts if isinstance(value, nodes.Tuple | nodes.List) else (value,)
    starred = any(isinstance(expression, nodes.Starred) for expression in expressions)
    return [value.span] if starred else [expression.span for expression in expressions]


def _form(result: Any) -> Returned:
    if result is None:
        return None
    return tuple(range(len(result))) if isinstance(result, tuple | list) else 0


def _is_all(view: View) -> bool:
    return prod(view.shape) * view.dtype.size == view.tensor.bytes


# ---- Arguments as text, for `--info`: the same text whoever evaluates the kernel ----------------
# It is made of the kernel's own values: an element type is `nl.bfloat16`, however it was given.

LENGTH = 80  # characters of a value
_ELEMENTS = 8
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, range, slice, type(...)})
_BRACKETS: dict[type, tuple[str, str]] = {tuple: ("(", ")"), list: ("[", "]"), dict: ("{", "}")}


def text(value: Any, other: Callable[[Any], str]) -> str:
    """Return a short text for a value. `other` returns that of an object or function."""
    value = plain(value)
    kind = type(value)
    if kind is DType or (kind is str and value in DTYPES):  # for host code a dtype is its name
        return f"nl.{value}"
    if kind in _PLAIN:
        return short(repr(value))
    if isinstance(value, NkiTensor):
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    if kind not in _BRACKETS:
        return short(repr(value) if kind.__module__.startswith("nkic.language.") else other(value))
    items = list(value.items() if kind is dict else value)
    parts = [text(item, other) for item in items[:_ELEMENTS]]
    if kind is dict:
        parts = [f"{text(k, other)}: {text(v, other)}" for k, v in items[:_ELEMENTS]]
    inner = ", ".join(parts) + ", …" * (len(items) > _ELEMENTS)
    opening, closing = _BRACKETS[kind]
    return short(f"{opening}{inner}{closing}")


def short(shown: str) -> str:
    """Return a text without control characters, of at most `LENGTH` characters."""
    shown = clean(shown)
    return shown if len(shown) <= LENGTH else shown[: LENGTH - 1] + "…"
