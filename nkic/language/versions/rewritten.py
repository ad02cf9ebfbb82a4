"""Calls that later versions write in another form, beyond a renaming.

Source: migration guide, 0.2.0 to 0.3.0, API breaking changes and parameter changes. `removed` has
the removals and their versions; these tables have the new forms, for tools that rewrite source.
"""

from __future__ import annotations

from typing import NamedTuple

from nkic.base.profiles import Profile


class Wrapped(NamedTuple):
    """A parameter replaced by another one, whose value an instruction makes."""

    name: str
    by: str


class Chosen(NamedTuple):
    """A flag replaced by a parameter with members of the enumeration of the same name."""

    name: str
    yes: str
    no: str


class Merged(NamedTuple):
    """A parameter that made an instruction accumulate into `dst`, replaced by an instruction.

    Instruction `by` takes the operator as `operator`, and dst among the sources. `kept` are the
    parameters that both have. The operator `None` means the plain instruction.
    """

    by: str
    operator: str
    kept: tuple[str, ...]


class Moved(NamedTuple):
    """A parameter whose position `place` now belongs to another one.

    A call has the former order if its argument at position `shown` (from 0) is not an nl operator,
    or, if the call is shorter, if `named` is passed by name after `place`. `swap` is the position
    that takes the value; None if it moves to the end, by name.
    """

    name: str
    place: int
    shown: int
    named: str
    swap: int | None = None


class Product(NamedTuple):
    """A function that is one instruction with arguments `names` if `flag` is True.

    If `flag` is False, the instructions of `turn` transpose the first argument before.
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
# Parameters that have an effect only together with another one.
WITH = {("dma_copy", "unique_indices"): "dst_rmw_op"}
ORDER = {
    "affine_select": Moved("offset", 2, 5, "channel_multiplier"),
    "dma_compute": Moved("scales", 2, 2, "reduce_op", swap=3),
}
ORDER_SINCE = Profile.NKI_0_3
# Values that must be integers if dst holds integers, and axes that default to the last one.
WHOLE = {"memset": "value"}
LAST_AXIS = {"tensor_reduce": "data"}

# Methods of Beta 1's tiles that are now functions of nl.
FUNCTIONS = ("broadcast_to", "expand_dims")
# Functions that Beta 1 accepts as operators, with the current operator. Reductions name the
# operator that they fold with; NumPy's functions are included.
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
# Decorators of Beta 1 and their replacements; "" for none.
FRAMEWORKS = ("torch_neuronx.nki_jit", "jax_neuronx.nki_jit")  # aliases of nki.jit
DECORATORS = {"baremetal": "jit", "benchmark": "jit", "profile": "jit", "trace": ""} | {
    f"compiler.{name}": ""
    for name in ("skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc")
}
# Functions of Beta 1 with a dtype argument; today the NumPy array itself is converted.
CONVERTED = {"shared_constant": "dtype"}
# Strings of Beta 1 with a new spelling, by instruction and parameter, and former defaults of
# functions of `nki.language`.
WORDS = {("nc_matmul", "perf_mode"): {"double_row_gen3": "double_row"}}
DEFAULTS = {"rand": ("dtype", "float32")}

# Instructions of Beta 1 with an index expression, a comparison of two, or a shape: their
# parameters.
BY_INDEX = {"iota": ("expr", "dtype")}
BY_CONDITION = {"affine_select": ("pred", "on_true_tile", "on_false_value")}
# The parameters that express such an index today (step and size of each axis, offset, step over
# partitions), and the operands that a comparison chooses from.
AS_PATTERN = ("pattern", "offset", "channel_multiplier")
AS_CHOICE = ("on_true_tile", "on_false_value", "cmp_op")
BY_SHAPE = {"memset": ("shape", "value", "dtype")}
# The operand that such an instruction cannot read from PSUM; Beta 1 copied it first.
COPIED = {"affine_select": "on_true_tile"}
# The sizes of a result by dimension: an operand and its dimension, negative from the end.
SIZES = {
    "nc_matmul": {0: ("stationary", -1), 1: ("moving", -1)},
    "nc_transpose": {0: ("data", 1), 1: ("data", 0)},
    "dma_transpose": {0: ("src", 1), 1: ("src", 0)},
}
# Copies with a run-time offset, which a tile's index expresses today: now plain copies.
DYNAMIC = {
    "tensor_copy_dynamic_src": "tensor_copy",
    "tensor_copy_dynamic_dst": "tensor_copy",
}
# Instructions whose results are in SBUF and resemble an operand: the operand that gives the dtype
# without `dtype=`, and the shape if SIZES has no entry.
MADE_LIKE = {
    "tensor_copy": "src",
    "dma_transpose": "src",
    "activation": "data",
    "reciprocal": "data",
    "tensor_scalar": "data",
    "affine_select": "on_true_tile",
}
# Operands that were broadcast along dimensions of size 1.
REPEATED = {"tensor_tensor": ("data1", "data2")}
# The function that combined a value with a tensor in HBM: its parameters, and its replacement.
COMBINED = ("atomic_rmw", ("dst", "value", "op"), "dma_compute")
# The instruction that moves data to partitions at which no engine can start.
BY_DMA = "dma_copy"
# Parameters for results.
OUTPUTS = ("dst", "reduce_res", "accumulate")
