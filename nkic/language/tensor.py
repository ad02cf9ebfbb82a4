"""NkiTensor: a tensor in a kernel, which is a view with operations.

A view that cannot be made is reported at the expression that makes it, and evaluation continues
with a ghost of the intended shape, so that one run reports many mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, NoReturn

from nkic.base.device import Identical, KernelError, Missing
from nkic.base.diagnostics import Label, Level, did_you_mean
from nkic.base.profiles import Profile
from nkic.base.source import Span
from nkic.language import indexing, library, versions, views
from nkic.language.dtypes_api import as_dtype
from nkic.language.foreign import COMPUTES, IN_HBM, METHODS, as_instructions, one_tuple
from nkic.language.hosted import SURFACES, brief, is_array, plain, surface
from nkic.language.registers import DeviceInteger
from nkic.language.trace import (
    POISON,
    VIEWING,
    Failed,
    NkiInstruction,
    active,
    complain,
    has_failed,
    here,
    shown,
)
from nkic.language.views import ViewError, whole
from nkic.machine.dtypes import DType
from nkic.machine.operands import Register
from nkic.machine.targets import PARTITIONS, Buffer
from nkic.program.program import Tensor, View
from nkic.source import nodes
from nkic.source.bindings import STDLIB, SourceModule
from nkic.source.nodes import walk

# ---- Errors for using the value of a tensor at compile time, when it is unknown -----------------
# Python tests "is there a tensor?" and "is this value true?" with the same syntax, and a kernel
# may test the former. But the results of arithmetic, comparisons and reductions always exist, and
# so do parts of tensors: testing one of these means its value.

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
    text = f"{_quoted_names(view)} cannot be converted to a number: its values are {UNKNOWN}"
    consumer = _consumer()
    name = _callee(consumer.node) if consumer is not None else ""
    if name in library.public() and active().profile >= Profile.NKI_0_3:
        return _error(view, text, f"nl.{name} computes it for every element")
    help = "compute with `nl` functions or `nisa` instructions, or give the kernel the number"
    instead = library.as_function(name, len(view.shape))
    return _error(view, text, instead or f"{help} as an argument")


def no_loop(view: View) -> KernelError:
    text = f"{_quoted_names(view)} cannot be iterated: its values are {UNKNOWN}"
    consumer = _consumer()
    advice = _advise_call(consumer, view) if consumer is not None else ""
    index = "loop over `range(t.shape[i])` and index the tensor"
    return _error(view, text, advice or index)


def no_array(view: View) -> KernelError:
    text = f"{_quoted_names(view)} cannot be converted to an array: its values are {UNKNOWN}"
    return _error(view, text, "compute with `nl` functions or `nisa` instructions")


def with_array(view: View) -> KernelError:
    names = _quoted_names(view)
    text = f"a NumPy array cannot be combined with {names}, whose values are {UNKNOWN}"
    advice = "pass the array to the kernel as an argument"
    return _error(view, text, f"{advice}; a sum begins with a tile: nl.zeros(shape, dtype)")


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
    return (
        f"{advice}, `a` and `b` tiles of the condition's shape or numbers; `if` decides by shapes, "
        "dtypes and numbers that are arguments"
    )


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
    function = node.func if isinstance(node, nodes.Call) else None
    if isinstance(function, nodes.Attribute):
        return function.attr
    return function.id if isinstance(function, nodes.Name) else ""


def _text(consumer: _Consumer, node: nodes.Node, otherwise: str) -> str:
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


_SPECIAL = "__getitem__ __setitem__ __iter__ __abs__ __int__ __float__ __index__ __round__"


@surface(_SPECIAL, public=True)
class NkiTensor(Identical):
    """A tensor: the result of `nl.ndarray`, and the type of kernel parameters."""

    __slots__ = ("_access",)  # the view
    __hash__ = None  # type: ignore[assignment]  # like an array: `==` is not a bool

    def __init__(self, access: View) -> None:
        self._access = access

    # Attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self._access.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements between adjacent indices, for every dimension."""
        return self._access.strides

    @property
    def offset(self) -> int:
        """Elements from the start of the storage."""
        return self._access.offset

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._access.dtype

    @property
    def buffer(self) -> Buffer:
        """The memory of the storage.

        Arguments of a kernel on one core are in `nl.hbm`, on several cores in `nl.shared_hbm`
        (source: `nki.simulate`, "How It Works").
        """
        tensor = self._access.tensor
        return Buffer.HBM if active().is_own_input(tensor) else tensor.buffer

    @property
    def name(self) -> str:
        """The name of the storage, for messages."""
        return self._access.tensor.name

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._access.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self._access.shape)

    @property
    def base_tensor(self) -> NkiTensor:
        """The whole tensor that this is a view of.

        Undocumented; published kernels read it from kernel arguments (nki-library, moe_tkg), where
        it can only be the argument itself.
        """
        active().viewing()
        return NkiTensor(views.whole(self._access.tensor))

    @property
    def data(self) -> NkiTensor:
        """This tensor, so that callers may read `data` of tensors and of grids alike."""
        _require("data")
        return self

    # Questions

    def is_contiguous(self) -> bool:
        """Return whether the elements are dense in row-major order."""
        _require("is_contiguous")
        active().viewing()
        return views.is_contiguous(self._access)

    def get_pattern(self) -> list[list[int]]:
        """Return [stride, size] of every dimension."""
        active().viewing()
        return views.pattern(self._access)

    def is_indirect(self) -> bool:
        """Return whether an index is known only at run time."""
        _require("is_indirect")
        return self._access.dynamic is not None

    # Views

    def __getitem__(self, key: Any) -> NkiTensor:
        trace, access = active(), self._access
        budget = trace.budget
        budget.left -= VIEWING
        if budget.left < 0:
            budget.charge(0)
        if access.shape is not access.tensor.shape and trace.profile < versions.NESTED.since:
            _refuse_nested(access)
        try:
            if access.dynamic is None:
                return NkiTensor(indexing.index(access, key))
            return NkiTensor(indexing.unless_indirect(access, indexing.index, key))
        except ViewError as error:
            return self._report(error)

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> NkiTensor:
        """Slice one dimension: elements start, start + step … below end."""
        return self._view(indexing.slice_dim, dim, start, end, step)

    def select(self, dim: int, index: Any) -> NkiTensor:
        """Select one element of a dimension by an int, or at run time by a register or tensor."""
        if isinstance(index, NkiTensor | DeviceInteger):
            return self._view(indexing.select_at_run_time, dim, _source(index, self.buffer))
        return self._view(indexing.select, dim, index)

    def vector_select(self, dim: int, vector_offset: NkiTensor) -> NkiTensor:
        """Gather the rows given by a tensor of indices."""
        return self._view(indexing.vector_select, dim, _tensor(vector_offset, "vector_offset"))

    @one_tuple("one tuple", "permute")
    def permute(self, dims: Sequence[int]) -> NkiTensor:
        """Reorder the dimensions."""
        return self._view(views.permute, dims)

    def broadcast(self, dim: int, size: int) -> NkiTensor:
        """Repeat a dimension of size 1."""
        return self._view(views.broadcast, dim, size)

    def expand_dim(self, dim: int) -> NkiTensor:
        """Insert a dimension of size 1."""
        return self._view(views.expand_dim, dim)

    def squeeze_dim(self, dim: int) -> NkiTensor:
        """Drop a dimension of size 1."""
        return self._view(views.squeeze_dim, dim)

    @one_tuple("one tuple", "reshape")
    def reshape(self, shape: Sequence[int]) -> NkiTensor:
        """Return the same elements in another shape."""
        return self._view(views.reshape, shape)

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> NkiTensor:
        """Split one dimension into several."""
        return self._view(views.reshape_dim, dim, shape)

    def flatten_dims(self, start_dim: int, end_dim: int) -> NkiTensor:
        """Merge several dimensions into one."""
        return self._view(views.flatten_dims, start_dim, end_dim)

    def rearrange(
        self,
        src_pattern: Sequence[Any],
        dst_pattern: Sequence[Any],
        fixed_sizes: Mapping[str, int] | None = None,
    ) -> NkiTensor:
        """Split, reorder and merge dimensions by name."""
        return self._view(views.rearrange, src_pattern, dst_pattern, fixed_sizes or {})

    @one_tuple("a dtype, to read the same bytes as", "reshape", (int, tuple, list))
    def view(self, dtype: Any) -> NkiTensor:
        """Reinterpret the same bytes as another dtype."""
        return self._view(views.reinterpret, as_dtype(dtype, 0))

    reinterpret_cast = view

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: NkiTensor | DeviceInteger | None = None,
        vector_offset: NkiTensor | None = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> NkiTensor:
        """Return a hardware access pattern: [step, size] pairs over the storage."""
        scalar = None if scalar_offset is None else _source(scalar_offset, self.buffer)
        vector = None if vector_offset is None else _tensor(vector_offset, "vector_offset")
        kind = None if dtype is None else as_dtype(dtype)
        return self._view(
            indexing.access_pattern, pattern, offset, scalar, vector, indirect_dim, kind
        )

    def indirect(self, index: NkiTensor, num_elem: int | None = None) -> NkiTensor:
        """Gather or scatter columns by a tensor of offsets, as part of an instruction."""
        return self._view(indexing.indirect, _tensor(index, "index"), num_elem)

    def _view(self, operation: Callable[..., View], *args: Any) -> NkiTensor:
        if operation in _NEW_METHODS:
            _require(_NEW_METHODS[operation])
        active().recording()
        try:
            plain_args = (_plain(arg) for arg in args)
            return NkiTensor(indexing.unless_indirect(self._access, operation, *plain_args))
        except ViewError as error:
            return self._report(error)
        except (TypeError, ValueError) as error:
            name = operation.__name__
            raise KernelError(
                "argument-kind", f"{name} does not accept these arguments: {error}"
            ) from error

    def _report(self, error: ViewError) -> NkiTensor:
        """Report the error, unless it follows from an earlier one, and return a ghost."""
        tensor = self._access.tensor
        if tensor.number != POISON:
            about = [t for t in (tensor, error.index) if t is not None]
            message, argument = error.message, error.argument
            complain(error.slug, message, help=error.help, about=about, argument=argument)
        return NkiTensor(active().ghost(self._access, error.shape or self._access.shape))

    # Operations that need the values

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"NkiTensor({self.name}: {self.dtype.name}[{sizes}] in {self.buffer.value})"

    def __bool__(self) -> bool:
        """Return True, with a warning, for an argument or a declared tensor.

        Kernels test in this way whether an optional tensor was passed. For the result of a
        computation, or a part of a tensor, the test means its value: raises `KernelError`.
        """
        if is_computed(self._access):
            raise undecided(self._access)
        text = f"`{self.name}` is always true because it is a tensor, whatever its values are"
        consumer, help = _consumer(), "write `is not None`"
        if consumer is not None and isinstance(consumer.node, nodes.UnaryOp):
            help += "; nl.logical_not negates its elements"
        complain("tensor-value", text, help=help, level=Level.WARNING)
        return True

    def _no_loop(self, *_: Any) -> NoReturn:
        raise no_loop(self._access)

    def _no_array(self, *_: Any, **named: Any) -> NoReturn:
        raise no_array(self._access)

    def _no_number(self, *_: Any) -> NoReturn:
        raise no_number(self._access)

    __iter__ = __contains__ = _no_loop
    __array__ = __dlpack__ = __dlpack_device__ = _no_array
    __int__ = __float__ = __index__ = __round__ = _no_number

    def __format__(self, spec: str) -> str:
        if spec:
            raise no_number(self._access)
        return str(self)

    # NumPy's functions, if the Python interpreter evaluates the kernel

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **keywords: Any) -> Any:
        """Handle `np.exp(t)`, and operators whose first operand is a NumPy number.

        The latter are computed as the tensor's own operators.
        """
        reflected = _REFLECTED.get(function.__name__, "")
        if reflected and method == "__call__" and operands[-1] is self and not keywords:
            first = plain(operands[0])
            if isinstance(first, int | float):
                return getattr(self, reflected)(first)
        if any(
            getattr(operand, "ndim", 0)
            for operand in operands
            if not isinstance(operand, NkiTensor)
        ):
            raise with_array(self._access)
        raise no_ufunc(self._access, function.__name__)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        """Handle `np.sum(t)`, which is an error, and `np.shape(t)`, which is known."""
        name = function.__name__
        if name in ("shape", "ndim", "size") and len(args) == 1 and not named:
            return getattr(self, name)
        raise no_array_function(self._access, f"numpy.{name}")

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), named: Any = None
    ) -> NoReturn:
        """Handle `torch.relu(t)`, which is an error."""
        parts = [part for arg in args for part in (arg if isinstance(arg, list | tuple) else [arg])]
        tensor = next((part for part in parts if isinstance(part, cls)), None)
        named_tensors = (value for value in (named or {}).values() if isinstance(value, cls))
        tensor = tensor if tensor is not None else next(named_tensors)
        raise no_array_function(tensor._access, f"torch.{function.__name__}")

    def __len__(self) -> int:
        return self.shape[0]

    def __setitem__(self, key: Any, value: Any) -> None:
        """`t[key] = value` copies, since profile 0.3."""
        if isinstance(value, NkiInstruction):
            if not has_failed(value):
                text = "an instruction does not return a tensor that could be assigned"
                complain("argument-kind", text, help="pass the tensor as the instruction's dst")
            return
        _library_function("_assign", "assignment to a tensor")(self[key], value)

    def __getattr__(self, name: str) -> NoReturn:
        hints = METHODS if self.buffer.on_chip else METHODS | IN_HBM
        near = hints.get(name, "").format(library.free_axes(self.ndim)) or library.as_function(
            name.removesuffix("_"), self.ndim
        )
        if active().profile < Profile.NKI_0_3:
            near = as_instructions(near)
        text = f"a tensor has no attribute `{name}`"
        if not self.buffer.on_chip and name not in IN_HBM and COMPUTES.search(near):
            near = f"{_loading(self._access.tensor)}; then {near}"
        advise = near or (
            lambda: did_you_mean(
                name, [name for name in dir(NkiTensor) if not name.startswith("_")]
            )
        )
        raise Missing("unknown-attribute", text, name, advise)


def _loading(tensor: Tensor) -> str:
    load = f"t = nl.load({tensor.name}[…])"
    if active().profile < Profile.NKI_0_3:
        load = f"nisa.dma_copy(dst=t, src={tensor.name}[…])"
    return f"load a tile of at most {PARTITIONS} rows first: {load}"


def _library_function(name: str, feature: str) -> Callable[..., Any]:
    trace = active()
    if trace.profile < Profile.NKI_0_3:
        raise KernelError(
            "needs-profile",
            f"{feature} was added in NKI 0.3; this kernel is compiled as {trace.profile.label}",
            help="call a nisa function with a dst, or compile with `--nki 0.3` or later",
        )
    return trace.library(name)


def _in_hbm(*operands: Any) -> NkiTensor | None:
    """Report an operand in HBM, where no engine computes, and return a ghost of the result."""
    for operand in operands:
        view = operand._access if isinstance(operand, NkiTensor) else None
        if view is None or view.tensor.buffer.on_chip or view.tensor.number == POISON:
            continue
        tensor = view.tensor
        complain(
            "buffer-not-allowed",
            f"`{tensor.name}` is in {tensor.buffer.value}; engines compute on tiles in SBUF and "
            "PSUM",
            help=_loading(tensor),
            about=[tensor],
        )
        sizes = (1,) * (2 - len(view.shape)) + view.shape
        ghost = Tensor(POISON, tensor.name, view.dtype, sizes, Buffer.SBUF, tensor.at)
        return NkiTensor(whole(ghost))
    return None


def _operator(name: str, swapped: bool = False) -> Callable[[NkiTensor, Any], Any]:
    def apply(self: NkiTensor, operand: Any) -> Any:
        if not isinstance(operand, NkiTensor | int | float):
            operand = plain(operand)
        if not isinstance(operand, NkiTensor | int | float):
            if is_array(operand):
                raise with_array(self._access)
            return NotImplemented
        function = _library_function(name, "arithmetic with tensors")
        if (placeholder := _in_hbm(self, operand)) is not None:
            return _record_operands(placeholder, self, operand)
        return _record_operands(
            function(operand, self) if swapped else function(self, operand), self, operand
        )

    return apply


def _unary(name: str) -> Callable[[NkiTensor], Any]:
    return lambda self: _record_operands(
        _library_function(name, "arithmetic with tensors")(self), self
    )


def _record_operands(result: Any, *operands: Any) -> Any:
    if isinstance(result, NkiTensor):
        views = (operand._access for operand in operands if isinstance(operand, NkiTensor))
        computed(result._access, *views)
    return result


ARITHMETIC = {  # the functions of Python's operators
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "mod": "mod",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
UNARY = {"neg": "negative", "abs": "abs", "invert": "invert"}
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_REFLECTED = {  # by NumPy's binary function: the method of the second operand
    **{name: f"__r{python}__" for python, name in ARITHMETIC.items()},
    **{name: f"__{_SWAPPED.get(python, python)}__" for python, name in COMPARISONS.items()},
}
for _python, _name in ARITHMETIC.items():
    setattr(NkiTensor, f"__{_python}__", _operator(_name))
    setattr(NkiTensor, f"__r{_python}__", _operator(_name, swapped=True))
for _python, _name in COMPARISONS.items():
    setattr(NkiTensor, f"__{_python}__", _operator(_name))
for _python, _name in UNARY.items():
    setattr(NkiTensor, f"__{_python}__", _unary(_name))


def _refuse_nested(view: View) -> None:
    """Refuse an index of an indexed tensor under beta2 (migration guide to it)."""
    if prod(view.shape) * view.dtype.size < prod(view.tensor.shape) * view.tensor.dtype.size:
        versions.require("slice of a slice", versions.NESTED)


# The method names of operations that earlier versions do not have.
_NEW_METHODS: dict[Callable[..., View], str] = {
    indexing.slice_dim: "slice",
    indexing.select: "select",
    indexing.select_at_run_time: "select",
    views.permute: "permute",
    views.broadcast: "broadcast",
    views.expand_dim: "expand_dim",
    views.squeeze_dim: "squeeze_dim",
    views.reshape_dim: "reshape_dim",
    views.flatten_dims: "flatten_dims",
    views.rearrange: "rearrange",
    indexing.vector_select: "vector_select",
    indexing.indirect: "indirect",
}


def _require(name: str) -> None:
    versions.require(f"method `{name}` of tensors", versions.TENSOR[name])


def _tensor(value: Any, parameter: str) -> View:
    if isinstance(value, NkiTensor):
        return value._access
    raise KernelError("argument-kind", f"{parameter} must be a tensor, not {brief(value)}")


def _source(value: Any, buffer: Buffer) -> View | Register:
    """Return the source of a run-time index: a register, or a (1, 1) tensor in SBUF."""
    if isinstance(value, DeviceInteger):
        return value._offset(buffer)
    index = _tensor(value, "a run-time index")
    if index.tensor.number != POISON and prod(index.shape) != 1:
        raise KernelError(
            "argument-kind",
            f"a run-time index must be one element, a tensor of shape (1, 1), not {index.shape}",
            help=indexing.gathering(index.shape),
        )
    return index


def _plain(value: Any) -> Any:
    """Return a number of a kernel as an int of Python's, which compares and hashes as one."""
    if type(value) is int or not isinstance(value, int | tuple | list) or hasattr(value, "_fields"):
        return value
    return int(value) if isinstance(value, int) else tuple(map(_plain, value))


# A failed call stands for a tensor of any size.
_NUMBERS = {"__int__", "__float__", "__index__"}
surface(" ".join(n for n in SURFACES[NkiTensor].names if n not in _NUMBERS), public=True)(Failed)
