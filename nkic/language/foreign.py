"""Names of PyTorch, NumPy, JAX and Triton: what they are called in NKI, and how to write what NKI
has no function for.

Each advice on a name is a claim: tests/advice/test_foreign.py puts the code that it quotes in the
place of the name and compiles that. `t` is the tensor, `u` another, `n` a number of columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from nkic.base.device import KernelError
from nkic.base.diagnostics import Guess, did_you_mean
from nkic.language.views import meant_shape


def _named(table: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the text of each row, `name name: text`; deeper lines continue it."""
    for row in table.strip().replace("\n        ", " ").splitlines():
        names, _, text = row.strip().partition(": ")
        yield from ((name, text) for name in names.split())


# Functions with the same arguments and another name. Only names that differ by more than a spelling
# correction are listed, and those whose nearest name computes something else.
MEANT = dict(
    _named("""
    gelu_tanh gelu_new gelu_fast gelu_pytorch_tanh: gelu_apprx_tanh
    gelu_sigmoid quick_gelu: gelu_apprx_sigmoid
    swish: silu
    logistic expit: sigmoid
    leaky_relu: prelu
    atan: arctan
    amax: max
    amin: min
    pow: power
    mul times mult: multiply
    sub: subtract
    div true_divide fdiv div_rn: divide
    remainder: mod
    neg: negative
    bitwise_not: invert
    eq: equal
    ne: not_equal
    gt: greater
    ge: greater_equal
    lt: less
    le: less_equal
    empty: ndarray
    absolute: abs
    clone: copy
    trans matrix_transpose: transpose
    fmax: maximum
    fmin: minimum
    sqrt_rn: sqrt
    fix: trunc
    product: prod
    select: where
    xor: bitwise_xor
    and_: bitwise_and
    block_id block_idx blockIdx: program_id
    num_blocks grid_dim gridDim: num_programs
    or_: bitwise_or
    not_: logical_not
    bitwise_left_shift: left_shift
    bitwise_right_shift: right_shift
    manual_seed seed: random_seed
    rmsnorm: rms_norm
    half fp16: float16
    bf16: bfloat16
    tf32: tfloat32
    fp8 float8: float8_e4m3
    float: float32
    int: int32
    uint: uint32
    """)
)
# Functions whose arguments differ: the member of `nki.language` that does it, and how; `ndarray`,
# which every version has, where it takes none.
OTHERWISE = {
    name: (member, advice)
    for name, row in _named("""
    tile repeat expand expand_as broadcast_arrays repeat_interleave: broadcast_to:
        nl.broadcast_to(t, shape) repeats the elements of a tile
    dot mm bmm einsum linear tensordot dot_general mv: matmul: nl.matmul(x, y) multiplies two
        matrices
    array asarray from_numpy: shared_constant: nl.shared_constant(array) puts known numbers into HBM
    unsqueeze newaxis atleast_2d: expand_dims: nl.expand_dims(t, axis) adds a dimension of size 1
    inverse: reciprocal: nothing inverts a matrix; `nl.reciprocal(t)` divides 1 by elements
    masked_fill piecewise choose: where: nl.where(condition, x, y) chooses element by element
    clip clamp: minimum: nl.minimum(nl.maximum(t, low), high) keeps values within bounds
    relu6: relu: write `nl.minimum(nl.relu(t), 6.0)`
    exp2: exp: write `nl.exp(nl.multiply(t, 0.6931471805599453))`
    log2: log: write `nl.multiply(nl.log(t), 1.4426950408889634)`
    log10: log: write `nl.multiply(nl.log(t), 0.4342944819032518)`
    log1p: log: write `nl.log(nl.add(t, 1.0))`
    expm1: exp: write `nl.subtract(nl.exp(t), 1.0)`
    sinh: exp: write `nl.multiply(nl.subtract(nl.exp(t), nl.exp(nl.negative(t))), 0.5)`
    cosh: exp: write `nl.multiply(nl.add(nl.exp(t), nl.exp(nl.negative(t))), 0.5)`
    erfc: erf: write `nl.subtract(1.0, nl.erf(t))`
    fma: add: write `nl.add(nl.multiply(t, u), t)`, or one nisa.scalar_tensor_tensor
    std: var: write `nl.sqrt(nl.var(t, axis=1))`
    norm: sum: write `nl.sqrt(nl.sum(nl.square(t), axis=1))`
    any: max: write `nl.max(nl.not_equal(t, 0.0), axis=1)`
    logsumexp: log: write `nl.log(nl.sum(nl.exp(t), axis=1))`, with the maximum taken off t
    log_softmax: softmax: write `nl.log(nl.softmax(t, axis=1))`
    argmax: max: nisa.max8, then nisa.nc_find_index8, find the places of the largest values
    topk: max: nisa.max8 finds the 8 largest values, nisa.nc_find_index8 their places
    sort argsort median percentile quantile: max: nothing sorts: nisa.max8 finds the 8 largest
        values, nisa.nc_find_index8 their places
    cumsum: add: nisa.tensor_tensor_scan computes running sums along the free dimension
    cumprod: add: nisa.tensor_tensor_scan computes running products
    layer_norm batch_norm group_norm instance_norm: mean: nisa.bn_stats and nisa.bn_aggr compute
        mean and variance
    cat concat concatenate stack hstack vstack dynamic_update_slice column_stack row_stack dstack
        block append insert join: ndarray: make the whole with nl.ndarray, and write each part into
        its columns: `nisa.tensor_copy(dst=u[:, 0:n], src=t)`
    split chunk narrow unbind array_split hsplit vsplit dynamic_slice: ndarray: a slice is a part,
        without a copy: `t[:, 0:n]`
    full_like: full: write `nl.full(t.shape, 1.0, dtype=t.dtype)`
    ones_like: ones: write `nl.ones(t.shape, dtype=t.dtype)`
    eye identity: shared_identity_matrix: nl.shared_identity_matrix(n) puts one into HBM
    cast: copy: write `nl.copy(t, dtype=nl.bfloat16)`
    squeeze: ndarray: it is a method, for a dimension of size 1: `t.squeeze_dim(dim)`
    reshape: ndarray: it is a method, for the free dimensions: `t.reshape((128, 2, 32))`
    view resize: ndarray: it is the method reshape: `t.reshape((128, 2, 32))`
    permute: transpose: it is a method, for the free dimensions; nl.transpose swaps both
    cdiv: ndarray: write `(n + 3) // 4` with Python's integers
    constexpr: ndarray: every argument that is not a tensor is known while compiling
    static_assert: ndarray: write `assert n > 0`, which is evaluated while compiling
    inf Inf infinity: ndarray: write `float("inf")`
    nan NaN: ndarray: write `float("nan")`
    pi: ndarray: write math.pi, after `import math`
    e: ndarray: write math.e, after `import math`
    isnan: not_equal: write `nl.not_equal(t, t)`
    isinf: equal: write `nl.equal(nl.abs(t), float("inf"))`
    isfinite: less: write `nl.less(nl.abs(t), float("inf"))`
    isclose: less: write `nl.less(nl.abs(nl.subtract(t, u)), 1e-5)`
    nan_to_num: where: write `nl.where(nl.equal(t, t), t, 0.0)`
    signbit: less: write `nl.less(t, 0.0)`
    copysign: sign: write `nl.multiply(nl.abs(t), nl.sign(u))`
    heaviside: greater: write `nl.greater(t, 0.0)`
    count_nonzero: sum: write `nl.sum(nl.not_equal(t, 0.0), axis=1)`
    logical_nand: logical_not: write `nl.logical_not(nl.logical_and(t, u))`
    one_hot: equal: write `nl.equal(u, t[:, 0:1])`, where u holds 0, 1, 2, … in each row
    round around rint: floor: write `nl.floor(nl.add(t, 0.5))`, which rounds halves up
    floor_divide: floor: write `nl.floor(nl.divide(t, u))`
    hypot: sqrt: write `nl.sqrt(nl.add(nl.square(t), nl.square(u)))`
    deg2rad radians: multiply: write `nl.multiply(t, 0.017453292519943295)`
    rad2deg: multiply: write `nl.multiply(t, 57.29577951308232)`
    cbrt: power: write `nl.power(t, 0.3333333333333333)`, for positive numbers
    arcsin asin: arctan: write `nl.arctan(nl.multiply(t, nl.rsqrt(nl.subtract(1.0, nl.square(t)))))`
    arccos acos: arctan: write `nl.subtract(1.5707963267948966, nl.arctan(nl.multiply(t,
        nl.rsqrt(nl.subtract(1.0, nl.square(t))))))`
    arctan2 atan2: arctan: write `nl.arctan(nl.divide(t, u))`, where u is positive
    arcsinh asinh: log: write `nl.log(nl.add(t, nl.sqrt(nl.add(nl.square(t), 1.0))))`
    arctanh atanh: log: write `nl.multiply(nl.log(nl.divide(nl.add(t, 1.0), nl.subtract(1.0, t))),
        0.5)`
    sinc: sin: write `nl.divide(nl.sin(nl.multiply(t, math.pi)), nl.multiply(t, math.pi))`, with 1
        at 0
    logaddexp: log: write `nl.log(nl.add(nl.exp(t), nl.exp(u)))`, with the maximum taken off
    lerp: add: write `nl.add(t, nl.multiply(nl.subtract(u, t), 0.5))`
    addcmul: add: write `nl.add(t, nl.multiply(t, u))`
    addcdiv: add: write `nl.add(t, nl.divide(t, u))`
    ptp: max: write `nl.subtract(nl.max(t, axis=1), nl.min(t, axis=1))`
    nansum: where: write `nl.sum(nl.where(nl.equal(t, t), t, 0.0), axis=1)`
    nanmean: where: choose first: `nl.where(nl.equal(t, t), t, 0.0)`, and count them
    diff: subtract: write `nl.subtract(t[:, 1:n], t[:, 0:n - 1])`
    inner: sum: write `nl.sum(nl.multiply(t, u), axis=1)`
    vdot: sum: write `nl.sum(nl.multiply(t, u), axis=1)`, for each row
    outer: matmul: write `nl.matmul(t[0:1, :], u[0:1, :], transpose_x=True)`, of two rows
    outer_product: matmul: write `nl.matmul(t[0:1, :], u[0:1, :], transpose_x=True)`
    addmm baddbmm: matmul: nl.matmul(x, y) multiplies two matrices; add the rest with nl.add
    dot_scaled: ndarray: nisa.nc_matmul_mx multiplies what nisa.quantize_mx has made
    quantize: ndarray: nisa.quantize_mx makes microscaling types; nl.copy converts to others
    dequantize: ndarray: nisa.nc_matmul_mx takes the scales; else multiply by them
    cov: matmul: subtract the means, and multiply with nl.matmul
    corrcoef: matmul: subtract the means, divide by the norms, and multiply with nl.matmul
    fft: matmul: multiply by the matrix of its coefficients with nl.matmul
    elu celu: relu: write `nl.add(nl.relu(t), nl.subtract(nl.exp(nl.minimum(t, 0.0)), 1.0))`
    selu: relu: write `nl.add(nl.multiply(nl.relu(t), 1.0507009873554805),
        nl.multiply(nl.subtract(nl.exp(nl.minimum(t, 0.0)), 1.0), 1.7580993408473766))`
    hardtanh: minimum: write `nl.minimum(nl.maximum(t, -1.0), 1.0)`
    hardsigmoid: minimum: write `nl.minimum(nl.maximum(nl.add(nl.multiply(t, 1 / 6), 0.5), 0.0),
        1.0)`
    hardswish: minimum: write `nl.multiply(t, nl.minimum(nl.maximum(nl.add(nl.multiply(t, 1 / 6),
        0.5), 0.0), 1.0))`
    softsign: abs: write `nl.divide(t, nl.add(nl.abs(t), 1.0))`
    logsigmoid log_sigmoid: softplus: write `nl.negative(nl.softplus(nl.negative(t)))`
    softmin: softmax: write `nl.softmax(nl.negative(t), axis=1)`
    threshold: where: write `nl.where(nl.greater(t, 1.0), t, 0.0)`
    glu: sigmoid: write `nl.multiply(t, nl.sigmoid(u))`
    swiglu: silu: write `nl.multiply(nl.silu(t), u)`
    geglu: gelu: write `nl.multiply(nl.gelu(t), u)`
    mse_loss: mean: write `nl.mean(nl.square(nl.subtract(t, u)), axis=1)`
    cross_entropy: log: write `nl.log(nl.sum(nl.exp(t), axis=1))`, less the chosen logit
    attention flash_attention scaled_dot_product_attention: softmax: write it with nl.matmul and
        nl.softmax, tile by tile
    conv1d conv2d convolve: ndarray: for each place of the window, add a nisa.nc_matmul with a slice
        of the input, in PSUM
    max_pool2d avg_pool2d: ndarray: nisa.tensor_reduce over the last dimensions of a view:
        `t.reshape((128, 16, 4))`
    linspace: ndarray: nisa.iota writes 0, 1, 2, …: `nisa.iota(dst=t, pattern=[[1, n]], offset=0)`;
        scale them after
    meshgrid: ndarray: nisa.iota counts along rows and partitions: `nisa.iota(dst=t, pattern=[[1,
        n]], offset=0, channel_multiplier=0)`
    tri tril: ndarray: nisa.affine_select keeps the elements where partition - column >= 0:
        `nisa.affine_select(dst=u, pattern=[[-1, n]], channel_multiplier=1, cmp_op=nl.greater_equal,
        on_true_tile=t, on_false_value=0.0)`
    triu: ndarray: nisa.affine_select keeps the elements where column - partition >= 0:
        `nisa.affine_select(dst=u, pattern=[[1, n]], channel_multiplier=-1, cmp_op=nl.greater_equal,
        on_true_tile=t, on_false_value=0.0)`
    diag diagonal trace: ndarray: sum the products with an identity matrix, which
        nl.shared_identity_matrix puts into HBM
    moveaxis movedim swapaxes: ndarray: permute is a method, for the free dimensions; nl.transpose
        swaps both of a tile
    flip fliplr: ndarray: no access runs backwards: copy column by column,
        `nisa.tensor_copy(dst=u[:, n - 1:n], src=t[:, 0:1])`
    roll: ndarray: copy the parts: `nisa.tensor_copy(dst=u[:, 1:n], src=t[:, 0:n - 1])`, and the
        rest likewise
    pad: zeros: copy it into a larger tile: `nl.zeros((128, n + 2), dtype=t.dtype)`
    ravel flatten: ndarray: it is a method, for the free dimensions: flatten_dims(start, end)
    interleave: ndarray: write each part with a step: `nisa.tensor_copy(dst=u[:, 0:n:2], src=t[:,
        0:n // 2])`
    nonzero argwhere unique masked_select compress extract: where: shapes are known while compiling:
        mark elements with nl.where instead of taking them out
    argmin: max: nisa.max8, then nisa.nc_find_index8, of the negated values find the places of the
        least
    take take_along_axis gather index_select embedding: ndarray: nisa.dma_copy reads the rows that
        x.ap(…, vector_offset=indices, indirect_dim=0) names; nisa.nc_n_gather takes elements of
        each partition
    put scatter index_put: ndarray: nisa.dma_copy writes the rows that x.ap(…,
        vector_offset=indices, indirect_dim=0) names
    scatter_add index_add: ndarray: nisa.dma_compute adds to the rows that a vector_offset names
    cummax: ndarray: nisa.tensor_tensor_scan with nl.maximum computes running maxima
    cummin: ndarray: nisa.tensor_tensor_scan with nl.minimum computes running minima
    reduce: ndarray: write `nisa.tensor_reduce(dst=u[:, 0:1], op=nl.add, data=t, axis=1)`
    scan associative_scan lax: fori_loop: nl.fori_loop repeats a function on the device;
        nisa.tensor_tensor_scan computes running sums
    cond: where: nl.where(condition, x, y) chooses; an if decides while compiling
    allclose array_equal: ndarray: compare the outputs in Python: values are known only on the
        device
    randn normal randn_like: rand: only nl.rand draws, evenly from 0 to 1; pass normal numbers to
        the kernel as an argument
    random uniform rand_like: rand: write `nl.rand(t.shape, dtype=t.dtype)`, evenly from 0 to 1
    bernoulli: rand: write `nl.less(nl.rand(t.shape, dtype=t.dtype), 0.5)`
    PRNGKey: random_seed: nl.random_seed(seed) seeds what nl.rand draws
    make_block_ptr advance BlockSpec: ndarray: slice the tensor, which has no pointers: `t[:, 0:n]`
    pallas_call: ndarray: decorate the kernel with nki.jit, and call it
    jit: ndarray: decorate the kernel with nki.jit
    vmap vectorize map_elementwise apply_along_axis: ndarray: functions and instructions compute
        whole tiles: write a loop over tiles
    grad checkpoint: ndarray: a kernel has no gradients: write a kernel for them
    multiple_of max_contiguous assume: ndarray: remove it: shapes and addresses are known while
        compiling
    static_print: ndarray: write `print(n)`, which prints while compiling
    print: device_print: write `nl.device_print("t", t)`, or print(…) while compiling
    atomic_add atomic_max atomic_cas: ndarray: nothing is atomic: each program writes a part of its
        own
    threadIdx thread_id thread_idx threadIdx_x lane_id local_id: ndarray: there are no threads: an
        instruction computes a whole tile, of up to 128 partitions
    debug_barrier barrier syncthreads sync: ndarray: nisa.core_barrier orders two cores; the rest is
        ordered for you
    shared_memory shared alloc: ndarray: write
        `nl.ndarray((128, n), dtype=t.dtype, buffer=nl.sbuf)`, which is a tile
    dtype: ndarray: it belongs to a tensor: `t.dtype`
    shape: ndarray: it belongs to a tensor: `t.shape`
    size: ndarray: it belongs to a tensor: `t.size`
    ndim: ndarray: it belongs to a tensor: `t.ndim`
    histogram: sum: for each bin, write `nl.sum(nl.less(t, 1.0), axis=1)`, and subtract
    bincount: sum: for each number, write `nl.sum(nl.equal(t, 1.0), axis=1)`
    searchsorted: sum: for each number, write `nl.sum(nl.less(t, 1.0), axis=1)`
    interp: where: nothing interpolates: choose the piece with nl.where, and compute it
    bitwise_count: ndarray: nothing counts bits: add them up with shifts and nl.bitwise_and
    finfo: ndarray: write the number: float32 holds up to `3.4028235e38`
    iinfo: ndarray: write the number: int32 holds up to `2147483647`
    double long: float32: no engine computes with 64 bits: use nl.float32 or nl.int32
    """)
    for member, _, advice in [row.partition(": ")]
}
# Attributes of tensors, where they are not functions of `nki.language`; {} is an axis.
METHODS = dict(
    _named("""
    T H t mT: use nl.transpose or nisa.nc_transpose
    transpose swapaxes: use permute for free dimensions, nisa.nc_transpose across partitions
    astype: copy to a tensor of the other dtype with nisa.tensor_copy
    to: write `nl.copy(t, dtype=nl.bfloat16)`, for another dtype
    type: write `nl.copy(t, dtype=nl.bfloat16)`
    float: write `nl.copy(t, dtype=nl.float32)`
    half: write `nl.copy(t, dtype=nl.float16)`
    bfloat16: write `nl.copy(t, dtype=nl.bfloat16)`
    int: write `nl.copy(t, dtype=nl.int32)`
    clone: write `nl.copy(t)`
    detach requires_grad grad backward: remove it: a kernel has no gradients
    contiguous: remove it, or write `nl.copy(t)`
    device cuda cpu is_cuda: remove it: the tensors of a kernel are on the device
    numel: write `t.size`, which is a number
    dim: write `t.ndim`, which is a number
    flatten ravel: use flatten_dims(start, end) or reshape
    squeeze: use squeeze_dim(dim)
    unsqueeze: use expand_dim(dim)
    std: write nl.sqrt(nl.var(t, {}))
    argmax: use nisa.max8, then nisa.nc_find_index8
    zero_ fill_ fill: write `nisa.memset(t, value=0.0)`
    at: write into the part itself: `nisa.memset(t[:, 0:1], value=0.0)`
    type_as: write `nl.copy(t, dtype=u.dtype)`
    bool: write `nl.not_equal(t, 0.0)`
    itemsize nbytes element_size: write `t.size * t.dtype.itemsize`, which is a number of bytes
    len: write `t.shape[0]`, which is a number
    new_zeros: write `nl.zeros((128, n), dtype=t.dtype)`
    new_ones: write `nl.ones((128, n), dtype=t.dtype)`
    block_until_ready: remove it: what reads a tensor waits for what writes it
    item numpy tolist: values are known only on the device
    """)
) | {
    "new_empty": OTHERWISE["alloc"][1],
    "data_ptr": OTHERWISE["advance"][1],
    **dict.fromkeys(("double", "long"), OTHERWISE["long"][1]),
}

_COLUMNS = "permute((1, 0)) reads it column by column; nisa.dma_transpose loads it transposed"
# What differs for tensors in HBM.
IN_HBM = {
    "T": _COLUMNS,
    "transpose": _COLUMNS,
    "broadcast_to": "use broadcast(dim, size), one dimension at a time",
    **dict.fromkeys(
        ("zero_", "fill_", "fill", "at"),
        "fill a tile with nisa.memset, and copy it: `nisa.dma_copy(dst=x[0:128], src=t)`",
    ),
}

# Advice with code that computes on tiles: not on HBM, as transfers do, and not without an operand.
COMPUTES = re.compile(
    r"^(?!remove|permute is|it is a method|nisa\.(dma_|core_barrier)).*"
    r"\b(nl|nisa)\.(?!ndarray|sbuf|float32|zeros|ones|rand|shared|random)"
)

# Parameters: what each is called in NKI, by preference.
PARAMETERS = {
    name: tuple(others.split())
    for name, others in _named("""
    dim dims axes: axis
    keepdim keep_dims: keepdims
    input: x data src
    other b: y data2
    a: x data1
    out output: dst
    p: rate prob
    trans_a transpose_a transpose: transpose_x
    lhsT: stationary
    lhs: x data1 data
    rhs: moving y data2
    size: shape
    fill_value: value
    condition: cond
    """)
}
# Parameters that NKI has no name for, and what is written instead.
WITHOUT = dict(
    _named("""
    unbiased correction ddof: remove it: nl.var divides by the number of elements
    inplace: remove it, and pass the tile itself as dst
    approximate: remove it: nl.gelu_apprx_tanh is the approximation
    out: remove it: the function returns a new tile
    alpha: remove it, and multiply by it with nl.multiply
    initial: remove it, and combine the result with it
    acc: remove it, and add the result to it with nl.add
    allow_tf32 precision input_precision: remove it: the dtype of the operands is the precision
    preferred_element_type: remove it: products add in float32
    cache_modifier eviction_policy volatile: remove it: SBUF is no cache, and holds what you load
    non_blocking: remove it: transfers run beside computation by themselves
    memory_format: remove it: a tensor's order is that of its dimensions
    generator: remove it, and call nl.random_seed
    where: remove it, and choose the elements with nl.where first
    device: remove it: the tensors of a kernel are on the device
    requires_grad: remove it: a kernel has no gradients
    transpose_b trans_b: remove it, and pass nl.transpose(y)
    """)
)


def meant(name: str, names: Container[str]) -> str:
    """Return a `Guess` at the member of `names` that another library's name means, or ""."""
    meaning = MEANT.get(name, "")
    return Guess(name, meaning, False) if meaning in names else ""


def otherwise(name: str, names: Container[str] | None = None) -> str:
    """Return how to do what another library's function does, or "": with what is in `names`."""
    member, text = OTHERWISE.get(name, ("", ""))
    return text if names is None or member in names else ""


# A function of `nki.language` in an advice; `op=nl.add` is an operator, and in every version.
_FUNCTION = re.compile(r"(?<!=)\bnl\.(?!ndarray|sbuf)\w")


def as_instructions(advice: str) -> str:
    """Return the advice for versions whose `nki.language` has no functions of tensors."""
    return "write it with the instructions of nki.isa" if _FUNCTION.search(advice) else advice


def parameter(name: str, free: Collection[str]) -> str:
    """Return advice on an unknown parameter, another library's or a misspelt one, or "".

    `free` are the parameters that are not passed yet.
    """
    for meaning in PARAMETERS.get(name, ()):
        if meaning in free:
            return Guess(name, meaning, False)
    if name in ("lhs", "transpose") and any("stationary" in each for each in free):
        return "nisa.nc_matmul computes stationary.T @ moving, summed over partitions"
    return WITHOUT.get(name) or did_you_mean(name, free)


MOST_SIZES = 8  # that an advice repeats
_Method = TypeVar("_Method", bound=Callable[..., Any])


def one_tuple(taken: str, meant: str, wrong: Any = int) -> Callable[[_Method], _Method]:
    """Make a method tell what it takes if it gets sizes or dimensions one by one, as PyTorch's."""

    def of(method: _Method) -> _Method:
        @wraps(method)
        def call(self: Any, *args: Any, **named: Any) -> Any:
            if args and (args[1:] or isinstance(args[0], wrong)):
                listed = args[0] if isinstance(args[0], tuple | list) else args
                if meant == "reshape" and all(type(size) is int for size in listed):
                    listed = meant_shape(self._access, tuple(listed))
                parts = [str(int(p)) if isinstance(p, int) else "…" for p in listed[:MOST_SIZES]]
                inner = ", ".join([*parts, *["…"][: len(listed) - len(parts)]])
                text = f"{method.__name__} does not accept these arguments: it takes {taken}"
                comma = "," if len(listed) == 1 else ""
                advice = f"for another order or shape: .{meant}(({inner}{comma}))"
                raise KernelError("argument-kind", text, help=advice)
            return method(self, *args, **named)

        return cast(_Method, call)

    return of
