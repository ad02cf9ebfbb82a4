"""NkiTensor: a tensor in a kernel, which is a view with operations.

A view that cannot be made is reported at the expression that makes it, and evaluation continues
with a ghost of the intended shape, so that one run reports many mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NoReturn

from nkic.base.diagnostics import Level
from nkic.base.identity import Identical
from nkic.base.kernel_errors import KernelError, Missing
from nkic.base.profiles import Profile
from nkic.base.suggest import did_you_mean
from nkic.ir.tensors import Tensor, View
from nkic.language import library
from nkic.language.complain import complain
from nkic.language.dtypes_api import as_dtype
from nkic.language.hosted import plain
from nkic.language.registers import DeviceInteger
from nkic.language.tensors import decisions, indexing, patterns, reshapes, views
from nkic.language.tensors.views import ViewError, whole
from nkic.language.texts import brief
from nkic.language.trace import POISON, VIEWING, NkiInstruction, active, has_failed
from nkic.language.versions import since
from nkic.machine.dtypes import DType
from nkic.machine.facts import Register
from nkic.machine.memory import PARTITIONS, Buffer


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
        if access.shape is not access.tensor.shape and trace.profile < since.NESTED.since:
            _refuse_nested(access)
        try:
            if access.dynamic is None:
                return NkiTensor(indexing.index(access, key))
            return NkiTensor(patterns.unless_indirect(access, indexing.index, key))
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
        return self._view(patterns.vector_select, dim, _tensor(vector_offset, "vector_offset"))

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

    def reshape(self, shape: Sequence[int]) -> NkiTensor:
        """Return the same elements in another shape."""
        return self._view(reshapes.reshape, shape)

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> NkiTensor:
        """Split one dimension into several."""
        return self._view(reshapes.reshape_dim, dim, shape)

    def flatten_dims(self, start_dim: int, end_dim: int) -> NkiTensor:
        """Merge several dimensions into one."""
        return self._view(reshapes.flatten_dims, start_dim, end_dim)

    def rearrange(
        self,
        src_pattern: Sequence[Any],
        dst_pattern: Sequence[Any],
        fixed_sizes: Mapping[str, int] | None = None,
    ) -> NkiTensor:
        """Split, reorder and merge dimensions by name."""
        return self._view(reshapes.rearrange, src_pattern, dst_pattern, fixed_sizes or {})

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
            patterns.access_pattern, pattern, offset, scalar, vector, indirect_dim, kind
        )

    def indirect(self, index: NkiTensor, num_elem: int | None = None) -> NkiTensor:
        """Gather or scatter columns by a tensor of offsets, as part of an instruction."""
        return self._view(patterns.indirect, _tensor(index, "index"), num_elem)

    def _view(self, operation: Callable[..., View], *args: Any) -> NkiTensor:
        if operation in _NEW_METHODS:
            _require(_NEW_METHODS[operation])
        active().recording()
        try:
            plain_args = (_plain(arg) for arg in args)
            return NkiTensor(patterns.unless_indirect(self._access, operation, *plain_args))
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
        if decisions.is_computed(self._access):
            raise decisions.undecided(self._access)
        text = f"`{self.name}` is always true because it is a tensor, whatever its values are"
        complain("tensor-value", text, help="write `is not None`", level=Level.WARNING)
        return True

    def _no_loop(self, *_: Any) -> NoReturn:
        raise decisions.no_loop(self._access)

    def _no_array(self, *_: Any, **named: Any) -> NoReturn:
        raise decisions.no_array(self._access)

    def _no_number(self, *_: Any) -> NoReturn:
        raise decisions.no_number(self._access)

    __iter__ = __contains__ = _no_loop
    __array__ = _no_array
    __int__ = __float__ = __index__ = _no_number

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
            raise decisions.with_array(self._access)
        raise decisions.no_ufunc(self._access, function.__name__)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        """Handle `np.sum(t)`, which is an error, and `np.shape(t)`, which is known."""
        name = function.__name__
        if name in ("shape", "ndim", "size") and len(args) == 1 and not named:
            return getattr(self, name)
        raise decisions.no_array_function(self._access, f"numpy.{name}")

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), named: Any = None
    ) -> NoReturn:
        """Handle `torch.relu(t)`, which is an error."""
        parts = [part for arg in args for part in (arg if isinstance(arg, list | tuple) else [arg])]
        tensor = next((part for part in parts if isinstance(part, cls)), None)
        named_tensors = (value for value in (named or {}).values() if isinstance(value, cls))
        tensor = tensor if tensor is not None else next(named_tensors)
        raise decisions.no_array_function(tensor._access, f"torch.{function.__name__}")

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
        near = _HINTS.get(name, "").format(library.free_axes(self.ndim)) or library.as_function(
            name, self.ndim
        )
        text = f"a tensor has no attribute `{name}`"
        advise = near or (lambda: did_you_mean(name, _public_names()))
        raise Missing("unknown-attribute", text, name, advise)


_HINTS = {
    "T": "use nl.transpose or nisa.nc_transpose",
    "transpose": "use permute for free dimensions, nisa.nc_transpose across partitions",
    "astype": "copy to a tensor of the other dtype with nisa.tensor_copy",
    "broadcast_to": "use broadcast(dim, size), one dimension at a time",
    "flatten": "use flatten_dims(start, end) or reshape",
    "squeeze": "use squeeze_dim(dim)",
    "unsqueeze": "use expand_dim(dim)",
    "std": "write nl.sqrt(nl.var(t, {}))",
    "argmax": "use nisa.max8, then nisa.nc_find_index8",
    "item": "values are known only on the device",
    "numpy": "values are known only on the device",
}


def _public_names() -> list[str]:
    return [name for name in dir(NkiTensor) if not name.startswith("_")]


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
            help=f"load a tile of at most {PARTITIONS} rows first: nl.load({tensor.name}[…])",
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
    """Record the operands of an operator's result, and return the result."""
    if isinstance(result, NkiTensor):
        views = (operand._access for operand in operands if isinstance(operand, NkiTensor))
        decisions.computed(result._access, *views)
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
        since.require("slice of a slice", since.NESTED)


# The method names of operations that earlier versions do not have.
_NEW_METHODS: dict[Callable[..., View], str] = {
    indexing.slice_dim: "slice",
    indexing.select: "select",
    indexing.select_at_run_time: "select",
    views.permute: "permute",
    views.broadcast: "broadcast",
    views.expand_dim: "expand_dim",
    views.squeeze_dim: "squeeze_dim",
    reshapes.reshape_dim: "reshape_dim",
    reshapes.flatten_dims: "flatten_dims",
    reshapes.rearrange: "rearrange",
    patterns.vector_select: "vector_select",
    patterns.indirect: "indirect",
}


def _require(name: str) -> None:
    since.require(f"method `{name}` of tensors", since.TENSOR[name])


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
            help="slice the tensor of indices down to one element",
        )
    return index


def _plain(value: Any) -> Any:
    """Return a number of a kernel as an int of Python's, which compares and hashes as one."""
    if type(value) is int or not isinstance(value, int | tuple | list) or hasattr(value, "_fields"):
        return value
    return int(value) if isinstance(value, int) else tuple(map(_plain, value))
