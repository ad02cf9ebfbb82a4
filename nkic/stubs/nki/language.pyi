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
    """Base of the classes whose objects kernels use. A class without `__init__`, and that is no
        dataclass, takes its fields, `name: type`.
        """
    def __init__(self, *args: Any, **more: Any) -> None: ...
class NkiBlockGrid:
    """What `nl.blocks` gives."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
    @property
    def block_shape(self) -> Any:
        """Tiles of a block that is whole, along each dimension that is tiled."""
class NkiGrid:
    """What grids of tiles and of blocks have in common."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
    @property
    def shape(self) -> Any:
        """Tiles or blocks along each coordinate that is left, partial ones included."""
    @property
    def tile_shape(self) -> Any:
        """Elements of a tile that is whole, along each dimension that is tiled."""
    @property
    def element_shape(self) -> Any:
        """Elements selected along each dimension of the source."""
    @property
    def index_step_elements(self) -> Any:
        """Elements from one coordinate to the next, of those that are left."""
    @property
    def is_remainder(self) -> builtins.bool:
        """The last tile or block is a partial one, along any dimension."""
    @property
    def dtype(self) -> Any:
        """Type of the elements."""
    @property
    def buffer(self) -> Any:
        """Where the storage is."""
    @property
    def is_data_representable(self) -> builtins.bool:
        """One tensor of `element_shape` is exactly what is selected."""
    @property
    def data(self) -> NkiTensor:
        """All that is selected, as one operand of an instruction."""
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
        """Elements from one index to the next, for every dimension."""
    @property
    def offset(self) -> int:
        """Elements from the start of the storage."""
    @property
    def dtype(self) -> Any:
        """Type of the elements."""
    @property
    def buffer(self) -> Any:
        """Where the storage is. Arguments of a kernel on one core are in `nl.hbm`, on several in
            `nl.shared_hbm` (source: `nki.simulate`, "How It Works").
            """
    @property
    def name(self) -> str:
        """Name of the storage, for messages."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def base_tensor(self) -> NkiTensor:
        """The whole tensor that this is a view of. No documentation has it; published kernels
            read it of kernel arguments (nki-library, moe_tkg), where it can only be the argument.
            """
    @property
    def data(self) -> NkiTensor:
        """This tensor: what `data` of a grid gives, so that either can be passed on."""
    def is_contiguous(self) -> builtins.bool:
        """Elements follow one another in row-major order."""
    def get_pattern(self) -> list[list[int]]:
        """[stride, size] of every dimension."""
    def is_indirect(self) -> builtins.bool:
        """An index is known only at run time."""
    def __getitem__(self, key: Any) -> NkiTensor:
        """"""
    def slice(self, dim: int, start: int, end: int, step: int = ...) -> NkiTensor:
        """Elements start, start + step … below end of one dimension."""
    def select(self, dim: int, index: Any) -> NkiTensor:
        """One element of a dimension: an int, or a register or tensor read at run time."""
    def vector_select(self, dim: int, vector_offset: NkiTensor) -> NkiTensor:
        """The rows that a tensor of indices names."""
    def permute(self, dims: Any) -> NkiTensor:
        """The dimensions in another order."""
    def broadcast(self, dim: int, size: int) -> NkiTensor:
        """A dimension of size 1 repeated."""
    def expand_dim(self, dim: int) -> NkiTensor:
        """With a new dimension of size 1."""
    def squeeze_dim(self, dim: int) -> NkiTensor:
        """Without a dimension of size 1."""
    def reshape(self, shape: Any) -> NkiTensor:
        """The same elements in another shape."""
    def reshape_dim(self, dim: int, shape: Any) -> NkiTensor:
        """One dimension split into several."""
    def flatten_dims(self, start_dim: int, end_dim: int) -> NkiTensor:
        """Several dimensions merged into one."""
    def rearrange(self, src_pattern: Any, dst_pattern: Any, fixed_sizes: Any = ...) -> NkiTensor:
        """Dimensions split, reordered and merged by name."""
    def view(self, dtype: Any) -> NkiTensor:
        """The same bytes as another dtype."""
    def reinterpret_cast(self, dtype: Any) -> NkiTensor:
        """The same bytes as another dtype."""
    def ap(self, pattern: Any, offset: int | None = ..., scalar_offset: Any = ..., vector_offset: NkiTensor | None = ..., indirect_dim: int = ..., dtype: Any = ...) -> NkiTensor:
        """[step, size] pairs over the storage, as the hardware takes them."""
    def indirect(self, index: NkiTensor, num_elem: int | None = ...) -> NkiTensor:
        """Columns chosen by a tensor of offsets: a gather, or a scatter, of an instruction."""
class NkiTileGrid:
    """What `nl.tiles` gives."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
class ds:
    """`nl.ds(start, size)`: `size` elements from `start`, an int or a register."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
    start: Any
    size: Any
class nc:
    """`nl.nc(2)`: an axis of the grid that lies across cores; `nl.nc(2) * 4` has 8 instances."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
ndarray = NkiTensor
class no_reorder:
    """`with nl.no_reorder():` instructions inside keep their order.
    
    Loops on the device cannot stand inside; a region within a region belongs to the outer one."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
    def __enter__(self) -> None:
        """"""
    def __exit__(self, *error: Any) -> None:
        """"""
class par_dim:
    """`nl.par_dim(n)`: marks the partition dimension, which is the first one anyway."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
class spmd_dim:
    """`nl.spmd_dim(nl.nc(2), 4)`: an axis with instances on several cores. What stands first
        varies slowest: here the first core has instances 0 to 3, in `spmd_dim(4, nl.nc(2))` the even
        ones.
        """
    def __init__(self, *args: Any, **more: Any) -> None: ...
def abs(x: Any, dtype: Any = ...) -> Any:
    """abs(x, dtype=None)
    
    The magnitude of x."""
def abs_max(x: Any, y: Any, dtype: Any = ...) -> Any:
    """abs_max(x, y, dtype=None)
    
    x where |x| > |y|, else y."""
def abs_min(x: Any, y: Any, dtype: Any = ...) -> Any:
    """abs_min(x, y, dtype=None)
    
    x where |x| < |y|, else y."""
def add(x: Any, y: Any, dtype: Any = ...) -> Any:
    """add(x, y, dtype=None)
    
    x + y."""
def affine_range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """`range`, by any of its names in NKI: unrolled while the kernel is compiled."""
def all(x: Any, axis: Any, dtype: Any = ...) -> Any:
    """all(x, axis, dtype=None)
    
    1 where no element is 0, else 0."""
def alloc_blocks(*, tile_shape: Any, block_shape: Any, element_shape: Any, buffer: Any, dtype: Any, address: Any = ..., name: Any = ...) -> Any:
    """New storage as a grid of blocks, its contents undefined."""
def alloc_tiles(*, tile_shape: Any, element_shape: Any, buffer: Any, dtype: Any, address: Any = ..., name: Any = ...) -> Any:
    """New storage as a grid of tiles, its contents undefined."""
def arctan(x: Any, dtype: Any = ...) -> Any:
    """arctan(x, dtype=None)
    
    The scalar engine's arctan."""
def average(*args: Any, **more: Any) -> Any:
    """`nl.average`, for `op=` of instructions."""
bfloat16: str
def bitwise_and(x: Any, y: Any, dtype: Any = ...) -> Any:
    """bitwise_and(x, y, dtype=None)
    
    Bits set in both."""
def bitwise_or(x: Any, y: Any, dtype: Any = ...) -> Any:
    """bitwise_or(x, y, dtype=None)
    
    Bits set in either."""
def bitwise_xor(x: Any, y: Any, dtype: Any = ...) -> Any:
    """bitwise_xor(x, y, dtype=None)
    
    Bits set in exactly one."""
def blocks(source: Any, *, tile_shape: Any = ..., block_shape: Any) -> Any:
    """A tensor or a grid as a grid of blocks, of `block_shape` tiles each."""
bool: str
bool_: str
def broadcast_to(x: Any, shape: Any, dtype: Any = ...) -> Any:
    """broadcast_to(x, shape, dtype=None)
    
    A tile of `shape` that repeats the elements of `x`; `x` itself if it has that shape."""
def bypass(*args: Any, **more: Any) -> Any:
    """`nl.bypass`, for `op=` of instructions."""
def ceil(x: Any, dtype: Any = ...) -> Any:
    """ceil(x, dtype=None)
    
    The least whole number that is not below x."""
def copy(x: Any, dtype: Any = ...) -> Any:
    """copy(x, dtype=None)
    
    A new tile in SBUF with the elements of `x`.
    
    Until NKI 0.5 by the scalar engine, which takes integers through float32; then bit by bit."""
def cos(x: Any, dtype: Any = ...) -> Any:
    """cos(x, dtype=None)
    
    Cosine of x, off by less than 1e-6 for |x| up to 1e7."""
def device_print(print_prefix: Any, tensor: NkiTensor) -> Any:
    """device_print(print_prefix, tensor)
    
    Prints a string and the current values of a tensor.
    
    On dma, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    
    :param print_prefix: a string
    :param tensor: read, a tile, in hbm or sbuf
    
    Source: nki.language.device_print."""
def divide(x: Any, y: Any, dtype: Any = ...) -> Any:
    """divide(x, y, dtype=None)
    
    x / y, as x times the reciprocal of y."""
def dropout(x: Any, rate: Any, dtype: Any = ...) -> Any:
    """dropout(x, rate, dtype=None)
    
    A new tile: `x` with each element replaced by 0 with probability `rate`.
    
    `rate` is a number, or a tile with one element per partition. Nothing is scaled."""
def dynamic_range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """A loop on the device; bounds are ints or registers."""
def empty_like(x: Any, dtype: Any = ..., buffer: Any = ..., name: Any = ...) -> Any:
    """empty_like(x, dtype=None, buffer=None, name='')
    
    A new tensor with the shape of `x`, and its dtype and buffer unless given."""
def equal(x: Any, y: Any, dtype: Any = ...) -> Any:
    """equal(x, y, dtype=None)
    
    1 where x equals y, else 0."""
def erf(x: Any, dtype: Any = ...) -> Any:
    """erf(x, dtype=None)
    
    The scalar engine's erf."""
def erf_dx(x: Any, dtype: Any = ...) -> Any:
    """erf_dx(x, dtype=None)
    
    The scalar engine's erf_dx."""
def exp(x: Any, dtype: Any = ...) -> Any:
    """exp(x, dtype=None)
    
    The scalar engine's exp."""
def expand_dims(x: Any, axis: Any) -> Any:
    """expand_dims(x, axis)
    
    A view with a new dimension of size 1."""
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
    
    The greatest whole number that is not above x."""
def fmod(x: Any, y: Any, dtype: Any = ...) -> Any:
    """fmod(x, y, dtype=None)
    
    x - y trunc(x / y): has the sign of x."""
def fori_loop(lower: Any, upper: Any, body_fun: Any, step: Any = ...) -> Any:
    """Calls `body_fun(i)` with the counter of a loop on the device.
    
    Since 0.7 it is a scalar, unless a bound is a register (nki.language.fori_loop of 0.7)."""
def full(shape: Any, fill_value: Any, dtype: Any, buffer: Any = ..., name: Any = ...) -> Any:
    """full(shape, fill_value, dtype, buffer=nl.sbuf, name='')
    
    A new tensor full of `fill_value`."""
def gather_flattened(data: Any, indices: Any, axis: Any = ..., dtype: Any = ...) -> Any:
    """gather_flattened(data, indices, axis=0, dtype=None)
    
    In each partition, the elements of `data` that `indices` count, free dimensions as one."""
def gelu(x: Any, dtype: Any = ...) -> Any:
    """gelu(x, dtype=None)
    
    The scalar engine's gelu."""
def gelu_apprx_sigmoid(x: Any, dtype: Any = ...) -> Any:
    """gelu_apprx_sigmoid(x, dtype=None)
    
    The scalar engine's gelu_apprx_sigmoid."""
def gelu_apprx_sigmoid_dx(x: Any, dtype: Any = ...) -> Any:
    """gelu_apprx_sigmoid_dx(x, dtype=None)
    
    The scalar engine's gelu_apprx_sigmoid_dx."""
def gelu_apprx_tanh(x: Any, dtype: Any = ...) -> Any:
    """gelu_apprx_tanh(x, dtype=None)
    
    The scalar engine's gelu_apprx_tanh."""
def gelu_dx(x: Any, dtype: Any = ...) -> Any:
    """gelu_dx(x, dtype=None)
    
    The scalar engine's gelu_dx."""
def greater(x: Any, y: Any, dtype: Any = ...) -> Any:
    """greater(x, y, dtype=None)
    
    1 where x > y, else 0."""
def greater_equal(x: Any, y: Any, dtype: Any = ...) -> Any:
    """greater_equal(x, y, dtype=None)
    
    1 where x >= y, else 0."""
hbm: MemoryRegion
int16: str
int32: str
int64: str
int8: str
def invert(x: Any, dtype: Any = ...) -> Any:
    """invert(x, dtype=None)
    
    Every bit of x turned over."""
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
    
    x moved left by y bits."""
def less(x: Any, y: Any, dtype: Any = ...) -> Any:
    """less(x, y, dtype=None)
    
    1 where x < y, else 0."""
def less_equal(x: Any, y: Any, dtype: Any = ...) -> Any:
    """less_equal(x, y, dtype=None)
    
    1 where x <= y, else 0."""
def load(src: Any, dtype: Any = ...) -> Any:
    """load(src, dtype=None)
    
    A new tile in SBUF with the elements of `src`, converted on the way if `dtype` differs."""
def load_transpose2d(src: Any, dtype: Any = ...) -> Any:
    """load_transpose2d(src, dtype=None)
    
    A new tile in SBUF with the rows of `src` as columns."""
def log(x: Any, dtype: Any = ...) -> Any:
    """log(x, dtype=None)
    
    The scalar engine's log."""
def logical_and(x: Any, y: Any, dtype: Any = ...) -> Any:
    """logical_and(x, y, dtype=None)
    
    1 where neither is 0, else 0."""
def logical_not(x: Any, dtype: Any = ...) -> Any:
    """logical_not(x, dtype=None)
    
    1 where x is 0, else 0."""
def logical_or(x: Any, y: Any, dtype: Any = ...) -> Any:
    """logical_or(x, y, dtype=None)
    
    1 where either is not 0, else 0."""
def logical_xor(x: Any, y: Any, dtype: Any = ...) -> Any:
    """logical_xor(x, y, dtype=None)
    
    1 where exactly one is 0, else 0."""
def matmul(x: Any, y: Any, transpose_x: Any = ...) -> Any:
    """matmul(x, y, transpose_x=False)
    
    x @ y, or x.T @ y, as a new float32 tile in PSUM."""
def max(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """max(x, axis, dtype=None, keepdims=False)
    
    The greatest element."""
def maximum(x: Any, y: Any, dtype: Any = ...) -> Any:
    """maximum(x, y, dtype=None)
    
    The greater of x and y."""
def mean(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """mean(x, axis, dtype=None, keepdims=False)
    
    The mean, computed in float32."""
def min(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """min(x, axis, dtype=None, keepdims=False)
    
    The least element."""
def minimum(x: Any, y: Any, dtype: Any = ...) -> Any:
    """minimum(x, y, dtype=None)
    
    The lesser of x and y."""
def mish(x: Any, dtype: Any = ...) -> Any:
    """mish(x, dtype=None)
    
    The scalar engine's mish."""
def mod(x: Any, y: Any, dtype: Any = ...) -> Any:
    """mod(x, y, dtype=None)
    
    x - y floor(x / y): has the sign of y."""
def multiply(x: Any, y: Any, dtype: Any = ...) -> Any:
    """multiply(x, y, dtype=None)
    
    x y."""
def negative(x: Any, dtype: Any = ...) -> Any:
    """negative(x, dtype=None)
    
    -x."""
def not_equal(x: Any, y: Any, dtype: Any = ...) -> Any:
    """not_equal(x, y, dtype=None)
    
    1 where x differs from y, else 0."""
def num_programs(axes: Any = ...) -> Any:
    """Instances of the launch grid along one axis or several; 1 without a grid."""
def ones(shape: Any, dtype: Any, buffer: Any = ..., name: Any = ...) -> Any:
    """ones(shape, dtype, buffer=nl.sbuf, name='')
    
    A new tensor full of ones."""
def power(x: Any, y: Any, dtype: Any = ...) -> Any:
    """power(x, y, dtype=None)
    
    x to the power of y: on gpsimd, which takes two tiles and no number."""
def prelu(*args: Any, **more: Any) -> Any:
    """`nl.prelu`, for `op=` of instructions."""
private_hbm: MemoryRegion
def prod(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """prod(x, axis, dtype=None, keepdims=False)
    
    The product."""
def program_id(axis: Any = ...) -> Any:
    """Which instance of the launch grid this is, along one axis; 0 without a grid."""
def program_ndim() -> Any:
    """Axes of the launch grid, 0 without one."""
psum: MemoryRegion
def rand(shape: Any, dtype: Any, buffer: Any = ..., name: Any = ...) -> Any:
    """rand(shape, dtype, buffer=nl.sbuf, name='')
    
    A new tensor of numbers, uniform from 0 to below 1 before they are rounded to `dtype`."""
def random_seed(seed: Any) -> Any:
    """random_seed(seed)
    
    Sets the generators that `rand` and `dropout` draw from; `seed` is a (1, 1) tile."""
def range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """`range`, by any of its names in NKI: unrolled while the kernel is compiled."""
def reciprocal(x: Any, dtype: Any = ...) -> Any:
    """reciprocal(x, dtype=None)
    
    1 / x."""
def relu(x: Any, dtype: Any = ...) -> Any:
    """relu(x, dtype=None)
    
    The scalar engine's relu."""
def right_shift(x: Any, y: Any, dtype: Any = ...) -> Any:
    """right_shift(x, y, dtype=None)
    
    x moved right by y bits, zeros move in."""
def rms_norm(x: Any, w: Any, axis: Any, n: Any, epsilon: Any = ..., dtype: Any = ..., compute_dtype: Any = ...) -> Any:
    """rms_norm(x, w, axis, n, epsilon=1e-06, dtype=None, compute_dtype=None)
    
    x / sqrt(sum of x² / n + epsilon) times w."""
def rsqrt(x: Any, dtype: Any = ...) -> Any:
    """rsqrt(x, dtype=None)
    
    1 / sqrt(x), from NKI 0.5 on gpsimd, which is more exact than the scalar engine, and does
    not reach PSUM."""
sbuf: MemoryRegion
def sequential_range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """`range`, by any of its names in NKI: unrolled while the kernel is compiled."""
def shared_constant(constant: Any) -> Any:
    """A tensor in shared HBM with this data; the same data gives the same tensor."""
shared_hbm: MemoryRegion
def shared_identity_matrix(n: Any, dtype: Any = ..., dst: Any = ...) -> Any:
    """shared_identity_matrix(n, dtype=nl.uint8, dst=None)
    
    The identity matrix of size `n` in SBUF."""
def sigmoid(x: Any, dtype: Any = ...) -> Any:
    """sigmoid(x, dtype=None)
    
    The scalar engine's sigmoid."""
def sign(x: Any, dtype: Any = ...) -> Any:
    """sign(x, dtype=None)
    
    The scalar engine's sign."""
def silu(x: Any, dtype: Any = ...) -> Any:
    """silu(x, dtype=None)
    
    The scalar engine's silu."""
def silu_dx(x: Any, dtype: Any = ...) -> Any:
    """silu_dx(x, dtype=None)
    
    The scalar engine's silu_dx."""
def sin(x: Any, dtype: Any = ...) -> Any:
    """sin(x, dtype=None)
    
    Sine of x, off by less than 1e-6 for |x| up to 1e7: the scalar engine's of an angle within
    half a turn, which is x itself within a quarter."""
def softmax(x: Any, axis: Any = ..., dtype: Any = ...) -> Any:
    """softmax(x, axis=-1, dtype=None)
    
    exp(x) / sum of exp(x), shifted by the greatest element so that nothing overflows."""
def softplus(x: Any, dtype: Any = ...) -> Any:
    """softplus(x, dtype=None)
    
    The scalar engine's softplus."""
def sqrt(x: Any, dtype: Any = ...) -> Any:
    """sqrt(x, dtype=None)
    
    The scalar engine's sqrt."""
def square(x: Any, dtype: Any = ...) -> Any:
    """square(x, dtype=None)
    
    The scalar engine's square."""
def static_range(start: Any, stop: Any = ..., step: Any = ...) -> Any:
    """`range`, by any of its names in NKI: unrolled while the kernel is compiled."""
def store(dst: Any, value: Any) -> Any:
    """store(dst, value)
    
    Writes a tile to HBM."""
def subtract(x: Any, y: Any, dtype: Any = ...) -> Any:
    """subtract(x, y, dtype=None)
    
    x - y."""
def sum(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """sum(x, axis, dtype=None, keepdims=False)
    
    The sum."""
def tan(x: Any, dtype: Any = ...) -> Any:
    """tan(x, dtype=None)
    
    Tangent of x, as sine by cosine: each is off by less than 1e-6 for |x| up to 1e7."""
def tanh(x: Any, dtype: Any = ...) -> Any:
    """tanh(x, dtype=None)
    
    The scalar engine's tanh."""
tfloat32: str
tile_size: Any
def tiles(source: Any, *, tile_shape: Any = ...) -> Any:
    """A tensor, a grid or a block as a grid of tiles."""
def transpose(x: Any, dtype: Any = ...) -> Any:
    """transpose(x, dtype=None)
    
    A new tile, in PSUM unless it is converted, with partitions and columns exchanged."""
def trunc(x: Any, dtype: Any = ...) -> Any:
    """trunc(x, dtype=None)
    
    x without its fraction."""
uint16: str
uint32: str
uint8: str
def var(x: Any, axis: Any, dtype: Any = ..., keepdims: Any = ...) -> Any:
    """var(x, axis, dtype=None, keepdims=False)
    
    The variance, computed in float32. The axes are kept, whatever `keepdims` says."""
def where(condition: Any, x: Any, y: Any, dtype: Any = ...) -> Any:
    """where(condition, x, y, dtype=None)
    
    A new tile: `x` where `condition` is not 0, else `y`."""
def while_loop(init: Any, body_fun: Any) -> Any:
    """Calls `body_fun(r)` on the device as long as the register that it returns is not 0.
    
    The loop has a register of its own, so that `init` keeps its value."""
def zeros(shape: Any, dtype: Any, buffer: Any = ..., name: Any = ...) -> Any:
    """zeros(shape, dtype, buffer=nl.sbuf, name='')
    
    A new tensor full of zeros."""
def zeros_like(x: Any, dtype: Any = ..., buffer: Any = ..., name: Any = ...) -> Any:
    """zeros_like(x, dtype=None, buffer=None, name='')
    
    A new tensor of zeros with the shape of `x`, and its dtype and buffer unless given."""
