# Written by `python -m nkic.nki.stubs` from nkic's tables.
import builtins
from enum import Enum, IntEnum
from typing import Any

DType = str
class MemoryRegion(Enum):
    sbuf = 'sbuf'
    psum = 'psum'
    private_hbm = 'private_hbm'
    shared_hbm = 'shared_hbm'
class NKIObject:
    """Base of the classes whose objects kernels use.

    A class without `__init__` that is not a dataclass gets one from its fields, `name: type`.
    """
    def __init__(self, *args: Any, **more: Any) -> None: ...
class NkiBlockGrid(NkiGrid):
    """The result of `nl.blocks`."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
    @property
    def block_shape(self) -> Any:
        """Tiles of a full block along each tiled dimension."""
class NkiGrid:
    """The base class of grids of tiles and of blocks."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
    @property
    def shape(self) -> Any:
        """Tiles or blocks along each remaining coordinate, partial ones included."""
    @property
    def tile_shape(self) -> Any:
        """Elements of a full tile along each tiled dimension."""
    @property
    def element_shape(self) -> Any:
        """Elements selected along each dimension of the source."""
    @property
    def index_step_elements(self) -> Any:
        """Elements between adjacent coordinates, for each remaining one."""
    @property
    def is_remainder(self) -> builtins.bool:
        """Whether the last tile or block is partial along any dimension."""
    @property
    def dtype(self) -> Any:
        """The element type."""
    @property
    def buffer(self) -> Any:
        """The memory of the storage."""
    @property
    def is_data_representable(self) -> builtins.bool:
        """Whether a single tensor of `element_shape` is exactly the selection."""
    @property
    def data(self) -> NkiTensor:
        """The selection as one operand of an instruction. Raises `KernelError` if it is not one."""
    def __getitem__(self, key: Any) -> Any:
        """"""
class NkiTensor:
    """A tensor, or a view of one."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Elements between adjacent indices, for every dimension."""
    @property
    def offset(self) -> int:
        """Elements from the start of the storage."""
    @property
    def dtype(self) -> Any:
        """The element type."""
    @property
    def buffer(self) -> Any:
        """The memory of the storage.

        Arguments of a kernel on one core are in `nl.hbm`, on several cores in `nl.shared_hbm`
        (source: `nki.simulate`, "How It Works").
        """
    @property
    def name(self) -> str:
        """The name of the storage, for messages."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def base_tensor(self) -> NkiTensor:
        """The whole tensor that this is a view of.

        Undocumented; published kernels read it from kernel arguments (nki-library, moe_tkg), where
        it can only be the argument itself.
        """
    @property
    def data(self) -> NkiTensor:
        """This tensor, so that callers may read `data` of tensors and of grids alike."""
    def is_contiguous(self) -> builtins.bool:
        """Return whether the elements are dense in row-major order."""
    def get_pattern(self) -> list[list[int]]:
        """Return [stride, size] of every dimension."""
    def is_indirect(self) -> builtins.bool:
        """Return whether an index is known only at run time."""
    def __getitem__(self, key: Any) -> NkiTensor:
        """"""
    def slice(self, dim: int, start: int, end: int, step: int = ...) -> NkiTensor:
        """Slice one dimension: elements start, start + step … below end."""
    def select(self, dim: int, index: Any) -> NkiTensor:
        """Select one element of a dimension by an int, or at run time by a register or tensor."""
    def vector_select(self, dim: int, vector_offset: NkiTensor) -> NkiTensor:
        """Gather the rows given by a tensor of indices."""
    def permute(self, dims: Any) -> NkiTensor:
        """Reorder the dimensions."""
    def broadcast(self, dim: int, size: int) -> NkiTensor:
        """Repeat a dimension of size 1."""
    def expand_dim(self, dim: int) -> NkiTensor:
        """Insert a dimension of size 1."""
    def squeeze_dim(self, dim: int) -> NkiTensor:
        """Drop a dimension of size 1."""
    def reshape(self, shape: Any) -> NkiTensor:
        """Return the same elements in another shape."""
    def reshape_dim(self, dim: int, shape: Any) -> NkiTensor:
        """Split one dimension into several."""
    def flatten_dims(self, start_dim: int, end_dim: int) -> NkiTensor:
        """Merge several dimensions into one."""
    def rearrange(self, src_pattern: Any, dst_pattern: Any, fixed_sizes: Any = ...) -> NkiTensor:
        """Split, reorder and merge dimensions by name."""
    def view(self, dtype: Any) -> NkiTensor:
        """Reinterpret the same bytes as another dtype."""
    def reinterpret_cast(self, dtype: Any) -> NkiTensor:
        """Reinterpret the same bytes as another dtype."""
    def ap(self, pattern: Any, offset: int | None = ..., scalar_offset: Any = ..., vector_offset: NkiTensor | None = ..., indirect_dim: int = ..., dtype: Any = ...) -> NkiTensor:
        """Return a hardware access pattern: [step, size] pairs over the storage."""
    def indirect(self, index: NkiTensor, num_elem: int | None = ...) -> NkiTensor:
        """Gather or scatter columns by a tensor of offsets, as part of an instruction."""
    def __add__(self, other: Any) -> Any: ...
    def __radd__(self, other: Any) -> Any: ...
    def __sub__(self, other: Any) -> Any: ...
    def __rsub__(self, other: Any) -> Any: ...
    def __mul__(self, other: Any) -> Any: ...
    def __rmul__(self, other: Any) -> Any: ...
    def __truediv__(self, other: Any) -> Any: ...
    def __rtruediv__(self, other: Any) -> Any: ...
    def __mod__(self, other: Any) -> Any: ...
    def __rmod__(self, other: Any) -> Any: ...
    def __pow__(self, other: Any) -> Any: ...
    def __rpow__(self, other: Any) -> Any: ...
    def __matmul__(self, other: Any) -> Any: ...
    def __rmatmul__(self, other: Any) -> Any: ...
    def __and__(self, other: Any) -> Any: ...
    def __rand__(self, other: Any) -> Any: ...
    def __or__(self, other: Any) -> Any: ...
    def __ror__(self, other: Any) -> Any: ...
    def __xor__(self, other: Any) -> Any: ...
    def __rxor__(self, other: Any) -> Any: ...
    def __lshift__(self, other: Any) -> Any: ...
    def __rlshift__(self, other: Any) -> Any: ...
    def __rshift__(self, other: Any) -> Any: ...
    def __rrshift__(self, other: Any) -> Any: ...
    def __lt__(self, other: Any) -> Any: ...
    def __le__(self, other: Any) -> Any: ...
    def __gt__(self, other: Any) -> Any: ...
    def __ge__(self, other: Any) -> Any: ...
    def __neg__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __invert__(self) -> Any: ...
class NkiTileGrid(NkiGrid):
    """The result of `nl.tiles`."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
class ds:
    """`nl.ds(start, size)`: `size` elements from `start`, an int or a register."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
    start: Any
    size: Any
class nc:
    """`nl.nc(2)`: a grid axis distributed over cores; `nl.nc(2) * 4` has 8 instances."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
ndarray = NkiTensor
class no_reorder:
    """`with nl.no_reorder():` keeps the program order of the instructions inside.

    Device loops are not allowed inside. A nested region belongs to the outer one.
    """
    def __init__(self, *args: Any, **more: Any) -> None: ...
    def __enter__(self) -> None:
        """"""
    def __exit__(self, *error: Any) -> None:
        """"""
class par_dim:
    """`nl.par_dim(n)`: marks the partition dimension, which is always the first."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
class spmd_dim:
    """`nl.spmd_dim(nl.nc(2), 4)`: an axis with instances on several cores.

    The first part varies slowest: here the first core has instances 0 to 3; in `spmd_dim(4,
    nl.nc(2))` it has the even ones.
    """
    def __init__(self, *args: Any, **more: Any) -> None: ...
def abs(x: Any, dtype: Any = ...) -> Any:
    """abs(x, dtype=None)

    The absolute value of x.
    """
def abs_max(x: Any, y: Any, dtype: Any = ...) -> Any:
    """abs_max(x, y, dtype=None)

    x where |x| > |y|, else y.
    """
def abs_min(x: Any, y: Any, dtype: Any = ...) -> Any:
    """abs_min(x, y, dtype=None)

    x where |x| < |y|, else y.
    """
def add(x: Any, y: Any, dtype: Any = ...) -> Any:
    """add(x, y, dtype=None)

    x + y.
    """
def affine_range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """`range` under any of its NKI names: unrolled at compile time."""
def all(x: Any, axis: Any, dtype: Any = ...) -> Any:
    """all(x, axis, dtype=None)

    1 where no element is 0, else 0.
    """
def alloc_blocks(*, tile_shape: Any, block_shape: Any, element_shape: Any, buffer: Any, dtype: Any, address: Any = ..., name: Any = ...) -> Any:
    """Return a grid of blocks over new, uninitialised storage."""
def alloc_tiles(*, tile_shape: Any, element_shape: Any, buffer: Any, dtype: Any, address: Any = ..., name: Any = ...) -> Any:
    """Return a grid of tiles over new, uninitialised storage."""
def arctan(x: Any, dtype: Any = ...) -> Any:
    """arctan(x, dtype=None)

    The scalar engine's arctan.
    """
def average(*args: Any, **more: Any) -> Any:
    """`nl.average`, for `op=` of instructions."""
bfloat16: str
def bitwise_and(x: Any, y: Any, dtype: Any = ...) -> Any:
    """bitwise_and(x, y, dtype=None)

    Bits set in both x and y.
    """
def bitwise_or(x: Any, y: Any, dtype: Any = ...) -> Any:
    """bitwise_or(x, y, dtype=None)

    Bits set in x or y.
    """
def bitwise_xor(x: Any, y: Any, dtype: Any = ...) -> Any:
    """bitwise_xor(x, y, dtype=None)

    Bits set in exactly one of x and y.
    """
def blocks(source: Any, *, tile_shape: Any = ..., block_shape: Any) -> Any:
    """Return a grid of blocks of `block_shape` tiles over a tensor or a grid."""
bool: str
bool_: str
def broadcast_to(x: Any, shape: Any, dtype: Any = ...) -> Any:
    """broadcast_to(x, shape, dtype=None)

    Return a tile of `shape` that repeats the elements of `x`; `x` itself if the shapes agree.
    """
def bypass(*args: Any, **more: Any) -> Any:
    """`nl.bypass`, for `op=` of instructions."""
def ceil(x: Any, dtype: Any = ...) -> Any:
    """ceil(x, dtype=None)

    The smallest integer not below x.
    """
def copy(x: Any, dtype: Any = ...) -> Any:
    """copy(x, dtype=None)

    Return a new tile in SBUF with the elements of `x`.

    Until NKI 0.5 the scalar engine copies, with integers through float32; later copies keep all
    bits.
    """
def cos(x: Any, dtype: Any = ...) -> Any:
    """cos(x, dtype=None)

    The cosine of x, with an error below 1e-6 for |x| up to 1e7.
    """
def device_print(print_prefix: Any, tensor: NkiTensor) -> Any:
    """device_print(print_prefix, tensor)

    Prints a string and the current values of a tensor.

    On dma, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param print_prefix: a string
    :param tensor: read, a tile, in hbm or sbuf

    Source: nki.language.device_print.
    """
def divide(x: Any, y: Any, dtype: Any = ...) -> Any:
    """divide(x, y, dtype=None)

    x / y, as x times the reciprocal of y.
    """
def dropout(x: Any, rate: Any, dtype: Any = ...) -> Any:
    """dropout(x, rate, dtype=None)

    Return a new tile: `x` with each element replaced by 0 with probability `rate`.

    `rate` is a number, or a tile with one element per partition. The result is not scaled.
    """
def dynamic_range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """Return a device loop; bounds are ints or registers."""
def empty_like(x: Any, dtype: Any = ..., buffer: Any = ..., name: Any = ...) -> Any:
    """empty_like(x, dtype=None, buffer=None, name='')

    Return a new tensor with the shape, and by default the dtype and buffer, of `x`.
    """
def equal(x: Any, y: Any, dtype: Any = ...) -> Any:
    """equal(x, y, dtype=None)

    1 where x equals y, else 0.
    """
def erf(x: Any, dtype: Any = ...) -> Any:
    """erf(x, dtype=None)

    The scalar engine's erf.
    """
def erf_dx(x: Any, dtype: Any = ...) -> Any:
    """erf_dx(x, dtype=None)

    The scalar engine's erf_dx.
    """
def exp(x: Any, dtype: Any = ...) -> Any:
    """exp(x, dtype=None)

    The scalar engine's exp.
    """
def expand_dims(x: Any, axis: Any) -> Any:
    """expand_dims(x, axis)

    Return a view with a new dimension of size 1.
    """
float16: str
float32: str
float4_e2m1fn_x4: str
float8_e4m3: str
float8_e4m3fn: str
float8_e4m3fn_x4: str
float8_e5m2: str
float8_e5m2_x4: str
float8_e8m0fnu: str
def floor(x: Any, dtype: Any = ...) -> Any:
    """floor(x, dtype=None)

    The largest integer not above x.
    """
def fmod(x: Any, y: Any, dtype: Any = ...) -> Any:
    """fmod(x, y, dtype=None)

    x - y trunc(x / y), with the sign of x.
    """
def fori_loop(lower: Any, upper: Any, body_fun: Any, step: Any = ...) -> Any:
    """Call `body_fun(i)` with the counter of a device loop.

    Since 0.7 the counter is a scalar unless a bound is a register (nki.language.fori_loop of 0.7).
    """
def full(shape: Any, fill_value: Any, dtype: Any, buffer: Any = ..., name: Any = ...) -> Any:
    """full(shape, fill_value, dtype, buffer=nl.sbuf, name='')

    Return a new tensor filled with `fill_value`.
    """
def gather_flattened(data: Any, indices: Any, axis: Any = ..., dtype: Any = ...) -> Any:
    """gather_flattened(data, indices, axis=0, dtype=None)

    Gather in each partition the elements of `data` at the flat positions `indices`.
    """
def gelu(x: Any, dtype: Any = ...) -> Any:
    """gelu(x, dtype=None)

    The scalar engine's gelu.
    """
def gelu_apprx_sigmoid(x: Any, dtype: Any = ...) -> Any:
    """gelu_apprx_sigmoid(x, dtype=None)

    The scalar engine's gelu_apprx_sigmoid.
    """
def gelu_apprx_sigmoid_dx(x: Any, dtype: Any = ...) -> Any:
    """gelu_apprx_sigmoid_dx(x, dtype=None)

    The scalar engine's gelu_apprx_sigmoid_dx.
    """
def gelu_apprx_tanh(x: Any, dtype: Any = ...) -> Any:
    """gelu_apprx_tanh(x, dtype=None)

    The scalar engine's gelu_apprx_tanh.
    """
def gelu_dx(x: Any, dtype: Any = ...) -> Any:
    """gelu_dx(x, dtype=None)

    The scalar engine's gelu_dx.
    """
def greater(x: Any, y: Any, dtype: Any = ...) -> Any:
    """greater(x, y, dtype=None)

    1 where x > y, else 0.
    """
def greater_equal(x: Any, y: Any, dtype: Any = ...) -> Any:
    """greater_equal(x, y, dtype=None)

    1 where x >= y, else 0.
    """
hbm: MemoryRegion
int16: str
int32: str
int64: str
int8: str
def invert(x: Any, dtype: Any = ...) -> Any:
    """invert(x, dtype=None)

    x with every bit inverted.
    """
def is_hbm(buffer: Any) -> Any:
    """Whether a buffer is any kind of HBM."""
def is_on_chip(buffer: Any) -> Any:
    """Whether a buffer is SBUF or PSUM."""
def is_psum(buffer: Any) -> Any:
    """Whether a buffer is PSUM."""
def is_sbuf(buffer: Any) -> Any:
    """Whether a buffer is SBUF."""
def left_shift(x: Any, y: Any, dtype: Any = ...) -> Any:
    """left_shift(x, y, dtype=None)

    x shifted left by y bits.
    """
def less(x: Any, y: Any, dtype: Any = ...) -> Any:
    """less(x, y, dtype=None)

    1 where x < y, else 0.
    """
def less_equal(x: Any, y: Any, dtype: Any = ...) -> Any:
    """less_equal(x, y, dtype=None)

    1 where x <= y, else 0.
    """
def load(src: Any, dtype: Any = ...) -> Any:
    """load(src, dtype=None)

    Return a new tile in SBUF with the elements of `src`, converted to `dtype`.
    """
def load_transpose2d(src: Any, dtype: Any = ...) -> Any:
    """load_transpose2d(src, dtype=None)

    Return a new tile in SBUF with the rows of `src` as columns.
    """
def log(x: Any, dtype: Any = ...) -> Any:
    """log(x, dtype=None)

    The scalar engine's log.
    """
def logical_and(x: Any, y: Any, dtype: Any = ...) -> Any:
    """logical_and(x, y, dtype=None)

    1 where neither x nor y is 0, else 0.
    """
def logical_not(x: Any, dtype: Any = ...) -> Any:
    """logical_not(x, dtype=None)

    1 where x is 0, else 0.
    """
def logical_or(x: Any, y: Any, dtype: Any = ...) -> Any:
    """logical_or(x, y, dtype=None)

    1 where x or y is not 0, else 0.
    """
def logical_xor(x: Any, y: Any, dtype: Any = ...) -> Any:
    """logical_xor(x, y, dtype=None)

    1 where exactly one of x and y is 0, else 0.
    """
def matmul(x: Any, y: Any, transpose_x: Any = ...) -> Any:
    """matmul(x, y, transpose_x=False)

    x @ y, or x.T @ y, as a new float32 tile in PSUM.
    """
def max(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """max(x, axis, dtype=None, keepdims=False)

    The largest element over `axis`.
    """
def maximum(x: Any, y: Any, dtype: Any = ...) -> Any:
    """maximum(x, y, dtype=None)

    The larger of x and y.
    """
def mean(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """mean(x, axis, dtype=None, keepdims=False)

    The mean over `axis`, computed in float32.
    """
def min(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """min(x, axis, dtype=None, keepdims=False)

    The smallest element over `axis`.
    """
def minimum(x: Any, y: Any, dtype: Any = ...) -> Any:
    """minimum(x, y, dtype=None)

    The smaller of x and y.
    """
def mish(x: Any, dtype: Any = ...) -> Any:
    """mish(x, dtype=None)

    The scalar engine's mish.
    """
def mod(x: Any, y: Any, dtype: Any = ...) -> Any:
    """mod(x, y, dtype=None)

    x - y floor(x / y), with the sign of y.
    """
def multiply(x: Any, y: Any, dtype: Any = ...) -> Any:
    """multiply(x, y, dtype=None)

    x * y.
    """
def negative(x: Any, dtype: Any = ...) -> Any:
    """negative(x, dtype=None)

    -x.
    """
def not_equal(x: Any, y: Any, dtype: Any = ...) -> Any:
    """not_equal(x, y, dtype=None)

    1 where x differs from y, else 0.
    """
def num_programs(axes: Any = ...) -> Any:
    """Return the size of the launch grid along one or several axes; 1 without a grid."""
def ones(shape: Any, dtype: Any, buffer: Any = ..., name: Any = ...) -> Any:
    """ones(shape, dtype, buffer=nl.sbuf, name='')

    Return a new tensor of ones.
    """
def power(x: Any, y: Any, dtype: Any = ...) -> Any:
    """power(x, y, dtype=None)

    x to the power of y, on gpsimd, which takes two tiles and no numbers.
    """
def prelu(*args: Any, **more: Any) -> Any:
    """`nl.prelu`, for `op=` of instructions."""
private_hbm: MemoryRegion
def prod(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """prod(x, axis, dtype=None, keepdims=False)

    The product over `axis`.
    """
def program_id(axis: Any = ...) -> Any:
    """Return this instance's index in the launch grid along `axis`; 0 without a grid."""
def program_ndim() -> Any:
    """Return the number of axes of the launch grid; 0 without a grid."""
psum: MemoryRegion
def rand(shape: Any, dtype: Any, buffer: Any = ..., name: Any = ...) -> Any:
    """rand(shape, dtype, buffer=nl.sbuf, name='')

    Return a new tensor of random numbers, uniform in [0, 1) before rounding to `dtype`.
    """
def random_seed(seed: Any) -> Any:
    """random_seed(seed)

    Seed the generators of `rand` and `dropout`; `seed` is a (1, 1) tile.
    """
def range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """`range` under any of its NKI names: unrolled at compile time."""
def reciprocal(x: Any, dtype: Any = ...) -> Any:
    """reciprocal(x, dtype=None)

    1 / x.
    """
def relu(x: Any, dtype: Any = ...) -> Any:
    """relu(x, dtype=None)

    The scalar engine's relu.
    """
def right_shift(x: Any, y: Any, dtype: Any = ...) -> Any:
    """right_shift(x, y, dtype=None)

    x shifted right by y bits, filled with zeros.
    """
def rms_norm(x: Any, w: Any, axis: Any, n: Any, epsilon: Any = ..., dtype: Any = ..., compute_dtype: Any = ...) -> Any:
    """rms_norm(x, w, axis, n, epsilon=1e-06, dtype=None, compute_dtype=None)

    x / sqrt(sum of x² / n + epsilon) times w.
    """
def rsqrt(x: Any, dtype: Any = ...) -> Any:
    """rsqrt(x, dtype=None)

    1 / sqrt(x); from NKI 0.5 on gpsimd, which is more accurate but cannot read PSUM.
    """
sbuf: MemoryRegion
def sequential_range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """`range` under any of its NKI names: unrolled at compile time."""
def shared_constant(constant: Any) -> Any:
    """Return a tensor in shared HBM with this data; interned by its contents."""
shared_hbm: MemoryRegion
def shared_identity_matrix(n: Any, dtype: Any = ..., dst: Any = ...) -> Any:
    """shared_identity_matrix(n, dtype=nl.uint8, dst=None)

    Return the identity matrix of size `n` in SBUF.
    """
def sigmoid(x: Any, dtype: Any = ...) -> Any:
    """sigmoid(x, dtype=None)

    The scalar engine's sigmoid.
    """
def sign(x: Any, dtype: Any = ...) -> Any:
    """sign(x, dtype=None)

    The scalar engine's sign.
    """
def silu(x: Any, dtype: Any = ...) -> Any:
    """silu(x, dtype=None)

    The scalar engine's silu.
    """
def silu_dx(x: Any, dtype: Any = ...) -> Any:
    """silu_dx(x, dtype=None)

    The scalar engine's silu_dx.
    """
def sin(x: Any, dtype: Any = ...) -> Any:
    """sin(x, dtype=None)

    The sine of x, with an error below 1e-6 for |x| up to 1e7.

    The scalar engine computes it for x minus full turns, reflected to within a quarter turn.
    """
def softmax(x: Any, axis: Any = ..., dtype: Any = ...) -> Any:
    """softmax(x, axis=-1, dtype=None)

    exp(x) / sum of exp(x), shifted by the largest element to prevent overflow.
    """
def softplus(x: Any, dtype: Any = ...) -> Any:
    """softplus(x, dtype=None)

    The scalar engine's softplus.
    """
def sqrt(x: Any, dtype: Any = ...) -> Any:
    """sqrt(x, dtype=None)

    The scalar engine's sqrt.
    """
def square(x: Any, dtype: Any = ...) -> Any:
    """square(x, dtype=None)

    The scalar engine's square.
    """
def static_range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """`range` under any of its NKI names: unrolled at compile time."""
def store(dst: Any, value: Any) -> Any:
    """store(dst, value)

    Write a tile to HBM.
    """
def subtract(x: Any, y: Any, dtype: Any = ...) -> Any:
    """subtract(x, y, dtype=None)

    x - y.
    """
def sum(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """sum(x, axis, dtype=None, keepdims=False)

    The sum over `axis`.
    """
def tan(x: Any, dtype: Any = ...) -> Any:
    """tan(x, dtype=None)

    The tangent of x, as sine / cosine, each with an error below 1e-6 for |x| up to 1e7.
    """
def tanh(x: Any, dtype: Any = ...) -> Any:
    """tanh(x, dtype=None)

    The scalar engine's tanh.
    """
tfloat32: str
tile_size: Any
def tiles(source: Any, *, tile_shape: Any = ...) -> Any:
    """Return a grid of tiles over a tensor, a grid, or a block."""
def transpose(x: Any, dtype: Any = ...) -> Any:
    """transpose(x, dtype=None)

    Return a new tile with partitions and columns exchanged; in PSUM unless it is converted.
    """
def trunc(x: Any, dtype: Any = ...) -> Any:
    """trunc(x, dtype=None)

    x without its fraction: rounded towards zero.
    """
uint16: str
uint32: str
uint8: str
def var(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """var(x, axis, dtype=None, keepdims=False)

    The variance over `axis`, computed in float32. The axes are kept regardless of `keepdims`.
    """
def where(condition: Any, x: Any, y: Any, dtype: Any = ...) -> Any:
    """where(condition, x, y, dtype=None)

    Return a new tile with `x` where `condition` is not 0, else `y`.
    """
def while_loop(init: Any, body_fun: Any) -> Any:
    """Call `body_fun(r)` on the device until the register that it returns is 0.

    The loop uses a copy of `init`, so that `init` keeps its value.
    """
def zeros(shape: Any, dtype: Any, buffer: Any = ..., name: Any = ...) -> Any:
    """zeros(shape, dtype, buffer=nl.sbuf, name='')

    Return a new tensor of zeros.
    """
def zeros_like(x: Any, dtype: Any = ..., buffer: Any = ..., name: Any = ...) -> Any:
    """zeros_like(x, dtype=None, buffer=None, name='')

    Return a new tensor of zeros with the shape, and by default the dtype and buffer, of `x`.
    """
