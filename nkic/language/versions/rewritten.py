"""Calls that a later version writes in another form, where more than one name changes.

Source: migration guide, 0.2.0 to 0.3.0, API breaking changes and parameter changes. What went and
since when is in `removed`; these tables say what stands in its place, for whoever rewrites source.
"""

from __future__ import annotations

from typing import NamedTuple

from nkic.base.profiles import Profile


class Wrapped(NamedTuple):
    """A parameter that became another one, whose value is made by an instruction."""

    name: str
    by: str


class Chosen(NamedTuple):
    """A flag that became a parameter with members of an enumeration of the same name."""

    name: str
    yes: str
    no: str


class Merged(NamedTuple):
    """A parameter that made an instruction add to `dst`: another one does, with the operator as
    `operator` and dst among the sources. `kept` are parameters that both have; `None` as the
    operator is the plain instruction.
    """

    by: str
    operator: str
    kept: tuple[str, ...]


class Moved(NamedTuple):
    """A parameter that lost its place by position `place` for its name, or for that of another.

    A call is of the former order if something other than an nl operator stands at `shown` (from 0),
    or, where it is shorter, if `named` is passed by name behind `place`. `swap` is the place
    that takes its value; None where it goes to the end, by name.
    """

    name: str
    place: int
    shown: int
    named: str
    swap: int | None = None


class Product(NamedTuple):
    """A function that is one instruction where `flag` is True; its arguments are `names` there.
    Where it is not, the first one was made by the instructions of `turn`.
    """

    by: str
    flag: str
    names: tuple[str, ...]
    turn: tuple[str, ...]


WRAPPED = {("register_move", "imm"): Wrapped("src", "register_alloc")}
CHOSEN = {("sendrecv", "use_gpsimd_dma"): Chosen("dma_engine", "gpsimd_dma", "dma")}
MERGED = {
    ("dma_copy", "dst_rmw_op"): Merged(
        "dma_compute", "reduce_op", ("unique_indices", "oob_mode", "name")
    )
}
# Parameters that say nothing without another one.
WITH = {("dma_copy", "unique_indices"): "dst_rmw_op"}
ORDER = {
    "affine_select": Moved("offset", 2, 5, "channel_multiplier"),
    "dma_compute": Moved("scales", 2, 2, "reduce_op", swap=3),
}
ORDER_SINCE = Profile.NKI_0_3
# Values that must be whole where dst holds integers, and axes that were taken for the last one.
WHOLE = {"memset": "value"}
LAST_AXIS = {"tensor_reduce": "data"}

# Methods of Beta 1's tiles that are functions of nl.
FUNCTIONS = ("broadcast_to", "expand_dims")
# Functions that Beta 1 takes for an operator, with the operator's name of today. Reductions name
# what they fold with; numpy's stand there, too.
OPERATORS = {
    **{"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum"},
    **{"sum": "add", "prod": "multiply", "all": "logical_and", "any": "logical_or"},
    **{"bitwise_not": "invert", "true_divide": "divide", "absolute": "abs"},
    **{"logical_shift_left": "left_shift", "logical_shift_right": "right_shift"},
    **{"float_power": "power", "remainder": "mod"},
}
PRODUCTS = {
    "matmul": Product(
        "nc_matmul", "transpose_x", ("stationary", "moving"), ("nc_transpose", "tensor_copy")
    )
}
# Decorators of Beta 1, and what stands there since; "" for nothing.
FRAMEWORKS = ("torch_neuronx.nki_jit", "jax_neuronx.nki_jit")  # which were nki.jit
DECORATORS = {"baremetal": "jit", "benchmark": "jit", "profile": "jit", "trace": ""} | {
    f"compiler.{name}": ""
    for name in ("skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc")
}
# Functions of Beta 1 with an element type for an array of NumPy, which converts it itself since.
CONVERTED = {"shared_constant": "dtype"}
# Words of Beta 1 that are others now, by instruction and parameter, and what functions of
# `nki.language` were given where nothing was said.
WORDS = {("nc_matmul", "perf_mode"): {"double_row_gen3": "double_row"}}
DEFAULTS = {"rand": ("dtype", "float32")}

# Instructions of Beta 1 that took an index expression, a comparison of two, or a shape: the
# parameters that they had.
BY_INDEX = {"iota": ("expr", "dtype")}
BY_CONDITION = {"affine_select": ("pred", "on_true_tile", "on_false_value")}
# What such an expression is said by today: step and size of each axis, where it begins, its step
# over partitions; and what a comparison chooses from.
AS_PATTERN = ("pattern", "offset", "channel_multiplier")
AS_CHOICE = ("on_true_tile", "on_false_value", "cmp_op")
BY_SHAPE = {"memset": ("shape", "value", "dtype")}
# The operand that such an instruction does not read from PSUM, where Beta 1 copied it before.
COPIED = {"affine_select": "on_true_tile"}
# Where the sizes of a result come from, by dimension: the operand, and its dimension, from the end
# where that is negative.
SIZES = {
    "nc_matmul": {0: ("stationary", -1), 1: ("moving", -1)},
    "nc_transpose": {0: ("data", 1), 1: ("data", 0)},
    "dma_transpose": {0: ("src", 1), 1: ("src", 0)},
}
# Copies at a place known at run time, which the index of a tile says: they are plain copies since.
DYNAMIC = {
    "tensor_copy_dynamic_src": "tensor_copy",
    "tensor_copy_dynamic_dst": "tensor_copy",
}
# Instructions whose results are in SBUF and like an operand: the one whose element type they had
# where `dtype=` said none, and whose shape where SIZES says nothing.
MADE_LIKE = {
    "tensor_copy": "src",
    "dma_transpose": "src",
    "activation": "data",
    "reciprocal": "data",
    "tensor_scalar": "data",
    "affine_select": "on_true_tile",
}
# Operands that were repeated along dimensions of one element.
REPEATED = {"tensor_tensor": ("data1", "data2")}
# The function that combined with what a tensor in HBM holds: its parameters, and what does so now.
COMBINED = ("atomic_rmw", ("dst", "value", "op"), "dma_compute")
# What moves data to partitions where no engine begins.
BY_DMA = "dma_copy"
# Parameters that a call writes to.
OUTPUTS = ("dst", "reduce_res", "accumulate")
