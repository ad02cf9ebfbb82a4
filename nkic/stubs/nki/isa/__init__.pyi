# Written by `python -m nkic.nki.stubs` from nkic's tables.
import builtins
from enum import Enum, IntEnum
from typing import Any
from nki.language import NkiTensor

class NkiInstruction:
    """The result of an instruction call: a handle for ordering it after others."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
    def depends_on(self, *producers: Any) -> Any:
        """Order this instruction after `producers`."""
class NkiScalar:
    """The read-only result of `nisa.scalar_load` and counter of `nl.fori_loop`.

    `+`, `-` and `*` record the operation and return a new scalar of the same width, which wraps
    around. The results of comparisons cannot be used (nki.isa.NkiScalar).
    """
    def __init__(self, *args: Any, **more: Any) -> None: ...
    @property
    def dtype(self) -> Any:
        """nl.int32 or nl.int64."""
    def __pos__(self) -> Any: ...
    def __neg__(self) -> Any: ...
    def __add__(self, other: Any) -> Any: ...
    def __radd__(self, other: Any) -> Any: ...
    def __sub__(self, other: Any) -> Any: ...
    def __rsub__(self, other: Any) -> Any: ...
    def __mul__(self, other: Any) -> Any: ...
    def __rmul__(self, other: Any) -> Any: ...
    def __lt__(self, other: Any) -> Any: ...
    def __le__(self, other: Any) -> Any: ...
    def __gt__(self, other: Any) -> Any: ...
    def __ge__(self, other: Any) -> Any: ...
class NkiValidationError(Exception):
    """NKI's exception for a rejected kernel; nkic raises `nkic.CompileError`."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
class VirtualRegister:
    """A register that instructions write and read."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
class dge_mode(Enum):
    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3
class dma_engine(Enum):
    dma = 1
    gpsimd_dma = 2
class engine(Enum):
    tensor = 1
    vector = 5
    scalar = 2
    gpsimd = 3
    dma = 4
    sync = 6
    unknown = 0
class matmul_perf_mode(Enum):
    none = 'none'
    double_row = 'double_row'
class nc_version(IntEnum):
    gen2 = 2
    gen3 = 3
    gen4 = 4
class oob_mode(Enum):
    error = 0
    skip = 1
class reduce_cmd(Enum):
    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4
def activate2(dst: NkiTensor, op: Any, data: NkiTensor, imm0: NkiTensor | float, imm1: NkiTensor | float, op0: Any, op1: Any, relu_param: NkiTensor | float = ..., reverse0: Any = ..., reverse1: Any = ..., reduce_op: Any = ..., reduce_res: NkiTensor | None = ..., reduce_cmd: Any = ..., name: str | None = ...) -> Any:
    """activate2(dst, op, data, imm0, imm1, op0, op1, relu_param=0.0, reverse0=False, reverse1=False, reduce_op=None, reduce_res=None, reduce_cmd='idle', name=None)

    dst = op((data op0 imm0) op1 imm1). reduce_cmd selects how the results, folded with reduce_op, update the reduce registers, which are then copied to reduce_res.

    On scalar, trn3 and newer, since NKI 0.4. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param op: an activation function
    :param data: read, a tile, in psum or sbuf
    :param imm0: read, a tile or a number, in psum or sbuf, one element per partition
    :param imm1: read, a tile or a number, in psum or sbuf, one element per partition
    :param op0: an operator
    :param op1: an operator
    :param relu_param: read, a tile or a number, in psum or sbuf, one element per partition; 0.0 if left out
    :param reverse0: a bool; False if left out
    :param reverse1: a bool; False if left out
    :param reduce_op: an operator or None; None if left out
    :param reduce_res: write, a tile or None, in psum or sbuf, one element per partition; None if left out
    :param reduce_cmd: one of idle, reset, reduce, reset_reduce; 'idle' if left out

    Source: nki.isa.activate2; NKI API common fields, supported activation functions.
    """
def activation(dst: NkiTensor, op: Any, data: NkiTensor, bias: NkiTensor | float | None = ..., scale: NkiTensor | float = ..., reduce_op: Any = ..., reduce_res: NkiTensor | None = ..., reduce_cmd: Any = ..., name: str | None = ...) -> Any:
    """activation(dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd='idle', name=None)

    dst = op(data x scale + bias). reduce_cmd selects how the sum of the results updates the reduce registers, which are then copied to reduce_res.

    On scalar, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's scalar is busy for 611 ns.

    :param dst: write, a tile, in psum or sbuf
    :param op: an activation function
    :param data: read, a tile, in psum or sbuf
    :param bias: read, a tile or a number or None, in psum or sbuf, one element per partition; None if left out
    :param scale: read, a tile or a number, in psum or sbuf, one element per partition; 1.0 if left out
    :param reduce_op: an operator or None; None if left out
    :param reduce_res: write, a tile or None, in psum or sbuf, one element per partition; None if left out
    :param reduce_cmd: one of idle, reset, reduce, reset_reduce; 'idle' if left out

    Source: nki.isa.activation; NKI API common fields, supported activation functions.
    """
def activation_reduce(dst: NkiTensor, op: Any, data: NkiTensor, reduce_op: Any, reduce_res: NkiTensor | None, bias: NkiTensor | float | None = ..., scale: NkiTensor | float = ..., name: str | None = ...) -> Any:
    """activation_reduce(dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0, name=None)

    dst = op(data x scale + bias); reduce_res = the sum of the results.

    On scalar, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's scalar is busy for 611 ns.

    :param dst: write, a tile, in psum or sbuf
    :param op: an activation function
    :param data: read, a tile, in psum or sbuf
    :param reduce_op: an operator
    :param reduce_res: write, a tile or None, in psum or sbuf, one element per partition
    :param bias: read, a tile or a number or None, in psum or sbuf, one element per partition; None if left out
    :param scale: read, a tile or a number, in psum or sbuf, one element per partition; 1.0 if left out

    Source: nki.isa.activation_reduce.
    """
def affine_select(dst: NkiTensor, pattern: Any, channel_multiplier: Any, on_true_tile: NkiTensor, on_false_value: Any, cmp_op: Any = ..., offset: Any = ..., name: str | None = ...) -> Any:
    """affine_select(dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op='equal', offset=0, name=None)

    dst = on_true_tile where an index computed as in iota compares true with 0, else on_false_value.

    On gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in sbuf
    :param pattern: a list of [step, num] pairs
    :param channel_multiplier: a 32-bit int
    :param on_true_tile: read, a tile, in sbuf
    :param on_false_value: a number
    :param cmp_op: an operator; 'equal' if left out
    :param offset: read, a number or a register; 0 if left out

    Source: nki.isa.affine_select.
    """
def bn_aggr(dst: NkiTensor, data: NkiTensor, name: str | None = ...) -> Any:
    """bn_aggr(dst, data, name=None)

    Mean and variance of all elements that the triples (count, mean, variance x count) in data summarise.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param data: read, a tile, in psum or sbuf

    Source: nki.isa.bn_aggr.
    """
def bn_stats(dst: NkiTensor, data: NkiTensor, name: str | None = ...) -> Any:
    """bn_stats(dst, data, name=None)

    Count, mean and variance x count of data's even elements, then of its odd ones.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param data: read, a tile, in psum or sbuf

    Source: nki.isa.bn_stats.
    """
def core_barrier(data: NkiTensor, cores: Any, engine: Any = ..., name: str | None = ...) -> Any:
    """core_barrier(data, cores, engine=engine.unknown, name=None)

    Waits until every core reaches it. On all cores, accesses to data before it complete before any access to data after it begins.

    On gpsimd, sync, tensor, vector, scalar, trn2 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param data: order, a tile, in shared_hbm
    :param cores: a tuple of ints
    :param engine: one of gpsimd, sync, tensor, vector, scalar; chosen if left out

    Source: nki.isa.core_barrier.
    """
def dma_compute(dst: NkiTensor, srcs: list[NkiTensor], reduce_op: Any, scales: Any = ..., unique_indices: Any = ..., oob_mode: Any = ..., name: str | None = ...) -> Any:
    """dma_compute(dst, srcs, reduce_op, scales=None, unique_indices=True, oob_mode='error', name=None)

    dst = the sum of srcs, element by element in the order of the dimensions, in float32.

    On dma, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's dma is busy for 708 ns.

    :param dst: write, a tile, in hbm or sbuf
    :param srcs: a list of 1 to 16 operands, read, a tile, in hbm or sbuf
    :param reduce_op: an operator
    :param scales: a tuple of numbers or None; None if left out
    :param unique_indices: a bool; True if left out (since NKI 0.3)
    :param oob_mode: one of error, skip; 'error' if left out (since NKI 0.4)

    Source: nki.isa.dma_compute.
    """
def dma_copy(dst: NkiTensor, src: NkiTensor, priority: Any = ..., oob_mode: Any = ..., dge_mode: Any = ..., engine: Any = ..., name: str | None = ...) -> Any:
    """dma_copy(dst, src, priority=None, oob_mode='error', dge_mode='unknown', engine=engine.unknown, name=None)

    dst = src, element by element in the order of the dimensions, converted through float32 if the types differ.

    On dma, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's dma is busy for 708 ns.

    :param dst: write, a tile, in hbm or sbuf
    :param src: read, a tile, in hbm or sbuf
    :param priority: an int or None; None if left out (on trn3 and newer)
    :param oob_mode: one of error, skip; 'error' if left out
    :param dge_mode: one of unknown, swdge, hwdge, none; 'unknown' if left out
    :param engine: one of unknown, sync, scalar; 'unknown' if left out

    Source: nki.isa.dma_copy; NKI DMA overview; migration guide to NKI 0.3.0.
    """
def dma_transpose(dst: NkiTensor, src: NkiTensor, axes: Any = ..., priority: Any = ..., dge_mode: Any = ..., oob_mode: Any = ..., name: str | None = ...) -> Any:
    """dma_transpose(dst, src, axes=None, priority=None, dge_mode='unknown', oob_mode='error', name=None)

    dst = src with its dimensions reversed; of four, the middle two keep their order.

    On dma, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in sbuf
    :param src: read, a tile, in hbm or sbuf
    :param axes: a tuple of ints or None; None if left out
    :param priority: an int or None; None if left out (on trn3 and newer)
    :param dge_mode: one of unknown, swdge, hwdge, none; 'unknown' if left out
    :param oob_mode: one of error, skip; 'error' if left out

    Source: nki.isa.dma_transpose; Trainium2 architecture guide, DMA transpose; descriptor generation engine reference.
    """
def dropout(dst: NkiTensor, data: NkiTensor, prob: NkiTensor | float, name: str | None = ...) -> Any:
    """dropout(dst, data, prob, name=None)

    dst = data, with each element replaced by 0 with probability prob.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's vector is busy for 592 ns.

    :param dst: write, a tile, in psum or sbuf
    :param data: read, a tile, in psum or sbuf
    :param prob: read, a tile or a number, in psum or sbuf, one element per partition, bfloat16 or float16 or float32 or float8_e4m3 or float8_e5m2 or tfloat32

    Source: nki.isa.dropout.
    """
def exponential(dst: NkiTensor, src: NkiTensor, max_value: NkiTensor | float = ..., reduce_res: NkiTensor | None = ..., reduce_cmd: Any = ..., reduce_init: NkiTensor | float = ..., name: str | None = ...) -> Any:
    """exponential(dst, src, max_value=0.0, reduce_res=None, reduce_cmd='idle', reduce_init=0.0, name=None)

    dst = e to the power of (src - max_value). reduce_cmd selects how the sum of the results updates the accumulators, which are then copied to reduce_res.

    On vector, trn3 and newer, since NKI 0.3. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf, bfloat16 or float16 or float32 or float8_e4m3 or float8_e5m2 or int16 or int32 or int8 or tfloat32 or uint16 or uint8
    :param src: read, a tile, in psum or sbuf, bfloat16 or float16 or float32 or float8_e4m3 or float8_e5m2 or int16 or int32 or int8 or uint16 or uint32 or uint8
    :param max_value: read, a tile or a number, in psum or sbuf, one element per partition; 0.0 if left out
    :param reduce_res: write, a tile or None, in psum or sbuf, one element per partition, bfloat16 or float16 or float32 or float8_e4m3 or float8_e5m2 or tfloat32; None if left out
    :param reduce_cmd: one of idle, reset_reduce, reduce, load_reduce; 'idle' if left out
    :param reduce_init: read, a tile or a number, in psum or sbuf, one element per partition; 0.0 if left out

    Source: nki.isa.exponential.
    """
def get_nc_sub_version() -> Any:
    """Return the silicon revision: 0, the first one, for every target."""
def get_nc_version() -> Any:
    """Return the generation of the target that calls are compiled for."""
gpsimd_engine: engine
def iota(dst: NkiTensor, pattern: Any, offset: Any = ..., channel_multiplier: Any = ..., name: str | None = ...) -> Any:
    """iota(dst, pattern, offset=0, channel_multiplier=0, name=None)

    Fills dst with offset + partition x channel_multiplier + the pattern's index.

    On gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in sbuf
    :param pattern: a list of [step, num] pairs
    :param offset: read, a number or a register; 0 if left out
    :param channel_multiplier: a 32-bit int; 0 if left out

    Source: nki.isa.iota.
    """
def local_gather(dst: NkiTensor, src_buffer: NkiTensor, index: NkiTensor, num_elem_per_idx: Any = ..., num_valid_indices: Any = ..., name: str | None = ...) -> Any:
    """local_gather(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, name=None)

    For each 16 partitions, num_elem_per_idx elements of src_buffer from each index on; index is read down its columns.

    On gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in sbuf
    :param src_buffer: read, a tile, in sbuf
    :param index: read, a tile, in sbuf, uint16
    :param num_elem_per_idx: an int; 1 if left out
    :param num_valid_indices: an int or None; None if left out

    Source: nki.isa.local_gather; its example in the SDK's tests (units of an index).
    """
def max8(dst: NkiTensor, src: NkiTensor, name: str | None = ...) -> Any:
    """max8(dst, src, name=None)

    The 8 largest elements of each partition of src, in descending order.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param src: read, a tile, in psum or sbuf

    Source: nki.isa.max8.
    """
def memset(dst: NkiTensor, value: Any, engine: Any = ..., name: str | None = ...) -> Any:
    """memset(dst, value, engine=engine.unknown, name=None)

    Every element of dst = value.

    On vector, gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's gpsimd is busy for 477 ns.

    :param dst: write, a tile, in psum or sbuf
    :param value: a number
    :param engine: one of vector, gpsimd; chosen if left out

    Source: nki.isa.memset; migration guide to NKI 0.3.0 (strict type matching).
    """
def nc_find_index8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, name: str | None = ...) -> Any:
    """nc_find_index8(dst, data, vals, name=None)

    The index in each partition of data of each of the 8 vals: equal ones match the first, the second … occurrence; all bits set if there is none.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf, uint16 or uint32
    :param data: read, a tile, in psum or sbuf
    :param vals: read, a tile, in psum or sbuf

    Source: nki.isa.nc_find_index8; nki.isa.nc_match_replace8 (equal values).
    """
def nc_match_replace8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, imm: Any, dst_idx: NkiTensor | None = ..., name: str | None = ...) -> Any:
    """nc_match_replace8(dst, data, vals, imm, dst_idx=None, name=None)

    dst = data with the first occurrence of each of the 8 vals replaced by imm; dst_idx = their indices: of equal vals, the last one takes the first occurrence.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param data: read, a tile, in psum or sbuf
    :param vals: read, a tile, in psum or sbuf
    :param imm: a number
    :param dst_idx: write, a tile or None, in psum or sbuf, uint16 or uint32; None if left out

    Source: nki.isa.nc_match_replace8.
    """
def nc_matmul(dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, is_stationary_onezero: Any = ..., is_moving_onezero: Any = ..., is_transpose: Any = ..., accumulate: Any = ..., tile_position: Any = ..., tile_size: Any = ..., perf_mode: Any = ..., name: str | None = ...) -> Any:
    """nc_matmul(dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False, accumulate=None, tile_position=(), tile_size=(), perf_mode='none', name=None)

    dst = transpose(stationary) x moving, added to dst if accumulate is True.

    On tensor, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum
    :param stationary: read, a tile, in sbuf, bfloat16 or float16 or float32 or float8_e4m3 or float8_e4m3fn or float8_e5m2 or tfloat32
    :param moving: read, a tile, in sbuf, bfloat16 or float16 or float32 or float8_e4m3 or float8_e4m3fn or float8_e5m2 or tfloat32
    :param is_stationary_onezero: a bool; False if left out
    :param is_moving_onezero: a bool; False if left out
    :param is_transpose: a bool; False if left out
    :param accumulate: a bool or None; None if left out (since NKI 0.3)
    :param tile_position: a tuple of ints; () if left out
    :param tile_size: a tuple of ints; () if left out
    :param perf_mode: one of none, double_row; 'none' if left out (on trn2 and newer)

    Source: nki.isa.nc_matmul; Trainium2 architecture guide, built-in transpose support.
    """
def nc_matmul_mx(dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, stationary_scale: NkiTensor, moving_scale: NkiTensor, tile_position: Any = ..., tile_size: Any = ..., accumulate: Any = ..., name: str | None = ...) -> Any:
    """nc_matmul_mx(dst, stationary, moving, stationary_scale, moving_scale, tile_position=None, tile_size=None, accumulate=None, name=None)

    dst = transpose(stationary) x moving, each element multiplied by its group's scale; the four elements of a packed one are contracted. Added to dst if accumulate is True.

    On tensor, trn3 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum, bfloat16 or float32
    :param stationary: read, a tile, in sbuf, float4_e2m1fn_x4 or float8_e4m3fn_x4 or float8_e5m2_x4
    :param moving: read, a tile, in sbuf, float4_e2m1fn_x4 or float8_e4m3fn_x4 or float8_e5m2_x4
    :param stationary_scale: read, a tile, in sbuf, float8_e8m0fnu or uint8
    :param moving_scale: read, a tile, in sbuf, float8_e8m0fnu or uint8
    :param tile_position: a tuple of ints or None; None if left out
    :param tile_size: a tuple of ints or None; None if left out
    :param accumulate: a bool or None; None if left out (since NKI 0.3)

    Source: nki.isa.nc_matmul_mx; MXFP matrix multiplication guide, data and scale tensor.
    """
def nc_n_gather(dst: NkiTensor, data: NkiTensor, indices: NkiTensor, name: str | None = ...) -> Any:
    """nc_n_gather(dst, data, indices, name=None)

    dst[i] = data[indices[i]], in each partition.

    On gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in sbuf
    :param data: read, a tile, in sbuf
    :param indices: read, a tile, in sbuf, uint32

    Source: nki.isa.nc_n_gather.
    """
def nc_stream_shuffle(dst: NkiTensor, src: NkiTensor, shuffle_mask: Any, name: str | None = ...) -> Any:
    """nc_stream_shuffle(dst, src, shuffle_mask, name=None)

    In each quadrant of 32 partitions, partition i of dst = partition shuffle_mask[i] of src; 255 leaves it unchanged.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param src: read, a tile, in psum or sbuf
    :param shuffle_mask: a tuple of ints

    Source: nki.isa.nc_stream_shuffle.
    """
def nc_transpose(dst: NkiTensor, data: NkiTensor, engine: Any = ..., name: str | None = ...) -> Any:
    """nc_transpose(dst, data, engine=engine.unknown, name=None)

    dst = data with partitions and (flattened) free dimensions exchanged.

    On tensor, vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param data: read, a tile, in psum or sbuf
    :param engine: one of tensor, vector; chosen if left out

    Source: nki.isa.nc_transpose; release notes of NKI 0.4.0 (engine by buffer of dst).
    """
def nonzero_with_count(dst: NkiTensor, src: NkiTensor, index_offset: Any = ..., padding_val: Any = ..., name: str | None = ...) -> Any:
    """nonzero_with_count(dst, src, index_offset=0, padding_val=-1, name=None)

    The indices, counted from index_offset, of the nonzero elements of src, then padding_val, and last their count; in partitions 0, 16 … 112 only.

    On gpsimd, trn2 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in sbuf, int32
    :param src: read, a tile, in sbuf, float32 or int32
    :param index_offset: a 32-bit int; 0 if left out
    :param padding_val: a 32-bit int; -1 if left out

    Source: nki.isa.nonzero_with_count.
    """
def quantize_mx(dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor, name: str | None = ...) -> Any:
    """quantize_mx(dst, src, dst_scale, name=None)

    dst = src divided by its group's power of two, rounded to 8 bits; dst_scale = the powers. Four consecutive elements are packed into one.

    On vector, trn3 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in sbuf, float8_e4m3fn_x4 or float8_e5m2_x4
    :param src: read, a tile, in sbuf, bfloat16 or float16
    :param dst_scale: write, a tile, in sbuf, float8_e8m0fnu or uint8

    Source: nki.isa.quantize_mx; MXFP matrix multiplication guide, scale tensor.
    """
def rand2(dst: NkiTensor, min: NkiTensor | float, max: NkiTensor | float, name: str | None = ...) -> Any:
    """rand2(dst, min, max, name=None)

    Fills dst with random numbers, uniform from min to max.

    On vector, trn3 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf, bfloat16 or float16 or float32 or float8_e4m3 or float8_e5m2 or int16 or int32 or int8 or tfloat32 or uint16 or uint32 or uint8
    :param min: read, a tile or a number, in psum or sbuf, one element per partition
    :param max: read, a tile or a number, in psum or sbuf, one element per partition

    Source: nki.isa.rand2.
    """
def rand_get_state(dst: NkiTensor, engine: Any = ..., name: str | None = ...) -> Any:
    """rand_get_state(dst, engine=engine.unknown, name=None)

    Stores the state of an engine's generators, each lane to its partition.

    On vector, gpsimd, trn2 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf, uint32
    :param engine: one of vector, gpsimd; chosen if left out

    Source: nki.isa.rand_get_state.
    """
def rand_set_state(src_seeds: NkiTensor, engine: Any = ..., name: str | None = ...) -> Any:
    """rand_set_state(src_seeds, engine=engine.unknown, name=None)

    Sets the state of an engine's generators, each lane from its partition.

    On vector, gpsimd, trn2 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param src_seeds: read, a tile, in sbuf, uint32
    :param engine: one of vector, gpsimd; chosen if left out

    Source: nki.isa.rand_set_state.
    """
def range_select(dst: NkiTensor, on_true_tile: NkiTensor, comp_op0: Any, comp_op1: Any, bound0: NkiTensor, bound1: NkiTensor, reduce_cmd: Any = ..., reduce_res: NkiTensor | None = ..., reduce_op: Any = ..., range_start: Any = ..., on_false_value: Any = ..., name: str | None = ...) -> Any:
    """range_select(dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd='reset_reduce', reduce_res=None, reduce_op='maximum', range_start=0, on_false_value=-3.4028234663852886e+38, name=None)

    dst = on_true_tile where the index in the partition, counted from range_start, compares true with both bounds, else the lowest float32; reduce_res = the maximum.

    On vector, trn2 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param on_true_tile: read, a tile, in psum or sbuf, bfloat16 or float16 or float32 or float8_e4m3 or float8_e4m3fn or float8_e5m2 or tfloat32
    :param comp_op0: an operator
    :param comp_op1: an operator
    :param bound0: read, a tile, in psum or sbuf, one element per partition, float32
    :param bound1: read, a tile, in psum or sbuf, one element per partition, float32
    :param reduce_cmd: one of idle, reset, reduce, reset_reduce; 'reset_reduce' if left out
    :param reduce_res: write, a tile or None, in psum or sbuf, one element per partition; None if left out
    :param reduce_op: an operator; 'maximum' if left out
    :param range_start: a 32-bit int; 0 if left out
    :param on_false_value: a number; -3.4028234663852886e+38 if left out

    Source: nki.isa.range_select.
    """
def reciprocal(dst: NkiTensor, data: NkiTensor, name: str | None = ...) -> Any:
    """reciprocal(dst, data, name=None)

    dst = 1 / data.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's vector is busy for 4325 ns.

    :param dst: write, a tile, in psum or sbuf
    :param data: read, a tile, in psum or sbuf

    Source: nki.isa.reciprocal; NKI API common fields, engine selection (8 N cycles).
    """
def register_alloc(x: Any = ...) -> Any:
    """register_alloc(x=None)

    Creates a register, initialised to x if given.

    On sync, tensor, vector, scalar, gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param x: read, a number or a register or None; None if left out

    Source: nki.isa.register_alloc.
    """
def register_load(dst: Any, src: NkiTensor) -> Any:
    """register_load(dst, src)

    Loads the single element of src into the register dst.

    On sync, tensor, vector, scalar, gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a register
    :param src: read, a tile, in hbm or sbuf

    Source: nki.isa.register_load.
    """
def register_move(dst: Any, src: Any) -> Any:
    """register_move(dst, src)

    dst = src: another register or an integer.

    On sync, tensor, vector, scalar, gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a register
    :param src: read, a number or a register

    Source: nki.isa.register_move.
    """
def register_store(dst: NkiTensor, src: Any) -> Any:
    """register_store(dst, src)

    Stores the register src in the single element of dst.

    On sync, tensor, vector, scalar, gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in hbm or sbuf
    :param src: read, a register

    Source: nki.isa.register_store.
    """
def rng(dst: NkiTensor, engine: Any = ..., name: str | None = ...) -> Any:
    """rng(dst, engine=engine.unknown, name=None)

    Fills dst with random bits: of 32 per element, the lowest that fit.

    On vector, gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf, int16 or int32 or int8 or uint16 or uint32 or uint8
    :param engine: one of vector, gpsimd; chosen if left out

    Source: nki.isa.rng.
    """
scalar_engine: engine
def scalar_load(src: NkiTensor) -> Any:
    """scalar_load(src)

    Returns the single element of src as a scalar.

    On sync, tensor, vector, scalar, gpsimd, trn1 and newer, since NKI 0.7. A tile on chip has at most 128 partitions.

    :param src: read, a tile, in hbm or sbuf

    Source: nki.isa.scalar_load.
    """
def scalar_store(dst: NkiTensor, value: Any) -> Any:
    """scalar_store(dst, value)

    Stores the scalar value in the single element of dst.

    On sync, tensor, vector, scalar, gpsimd, trn1 and newer, since NKI 0.7. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in hbm or sbuf
    :param value: read, a register

    Source: nki.isa.scalar_store.
    """
def scalar_tensor_tensor(dst: NkiTensor, data: NkiTensor, op0: Any, operand0: NkiTensor | float, op1: Any, operand1: NkiTensor, reverse0: Any = ..., reverse1: Any = ..., name: str | None = ...) -> Any:
    """scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, name=None)

    dst = (data op0 operand0) op1 operand1, operand1 a tile like data.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's vector is busy for 592 ns.

    :param dst: write, a tile, in psum or sbuf
    :param data: read, a tile, in psum or sbuf
    :param op0: an operator
    :param operand0: read, a tile or a number, in psum or sbuf, one element per partition
    :param op1: an operator
    :param operand1: read, a tile, in psum or sbuf
    :param reverse0: a bool; False if left out
    :param reverse1: a bool; False if left out

    Source: nki.isa.scalar_tensor_tensor.
    """
def select_reduce(dst: NkiTensor, predicate: NkiTensor, on_true: NkiTensor, on_false: NkiTensor | float, reduce_res: NkiTensor | None = ..., reduce_cmd: Any = ..., reduce_op: Any = ..., reverse_pred: Any = ..., name: str | None = ...) -> Any:
    """select_reduce(dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd='idle', reduce_op='maximum', reverse_pred=False, name=None)

    dst = on_true where predicate is not 0 (where it is 0, if reversed), else on_false; reduce_res = the maximum of each partition.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param predicate: read, a tile, in psum or sbuf, int16 or int8 or uint16 or uint8
    :param on_true: read, a tile, in psum or sbuf, bfloat16 or bool or float16 or float32 or float8_e4m3 or float8_e4m3fn or float8_e5m2 or int16 or int8 or uint16 or uint8
    :param on_false: read, a tile or a number, in psum or sbuf, one element per partition
    :param reduce_res: write, a tile or None, in psum or sbuf, one element per partition, bfloat16 or float16 or float32 or float8_e4m3 or float8_e4m3fn or float8_e5m2 or tfloat32; None if left out
    :param reduce_cmd: one of idle, reset_reduce, reduce; 'idle' if left out
    :param reduce_op: an operator; 'maximum' if left out
    :param reverse_pred: a bool; False if left out

    Source: nki.isa.select_reduce.
    """
def sendrecv(src: NkiTensor, dst: NkiTensor, send_to_rank: Any, recv_from_rank: Any, pipe_id: Any, dma_engine: Any = ..., name: str | None = ...) -> Any:
    """sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine='dma', name=None)

    dst = src of core recv_from_rank, while src is sent to core send_to_rank.

    On dma, gpsimd, trn2 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param src: read, a tile, in sbuf
    :param dst: write, a tile, in sbuf
    :param send_to_rank: an int
    :param recv_from_rank: an int
    :param pipe_id: an int
    :param dma_engine: one of dma, gpsimd_dma; 'dma' if left out (since NKI 0.3)

    Source: nki.isa.sendrecv.
    """
def sequence_bounds(dst: NkiTensor, segment_ids: NkiTensor, name: str | None = ...) -> Any:
    """sequence_bounds(dst, segment_ids, name=None)

    The start of the run of equal segment_ids around each element, then the end of each: n and -1 for elements that are 0.

    On gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in sbuf, float32 or int32
    :param segment_ids: read, a tile, in sbuf, float32 or int32

    Source: nki.isa.sequence_bounds; its example in the SDK's tests.
    """
def set_rng_seed(src_seeds: NkiTensor, name: str | None = ...) -> Any:
    """set_rng_seed(src_seeds, name=None)

    Sets the vector engine's generators in all lanes from one seed of 32 bits.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param src_seeds: read, a tile, in psum or sbuf, one element per partition, float32 or int32 or uint32

    Source: nki.isa.set_rng_seed.
    """
def tensor_copy(dst: NkiTensor, src: NkiTensor, engine: Any = ..., name: str | None = ...) -> Any:
    """tensor_copy(dst, src, engine=engine.unknown, name=None)

    dst = src; the same bits if the types are equal, else converted through float32.

    On vector, scalar, gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's vector is busy for 325 ns.

    :param dst: write, a tile, in psum or sbuf
    :param src: read, a tile, in psum or sbuf
    :param engine: one of vector, scalar, gpsimd; chosen if left out

    Source: nki.isa.tensor_copy; Trainium2 architecture guide, Vector Engine Performance Mode.
    """
def tensor_copy_predicated(dst: NkiTensor, src: NkiTensor | float, predicate: NkiTensor, reverse_pred: Any = ..., name: str | None = ...) -> Any:
    """tensor_copy_predicated(dst, src, predicate, reverse_pred=False, name=None)

    dst = src where predicate is not 0 (where it is 0, if reversed); else unchanged.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: update, a tile, in psum or sbuf
    :param src: read, a tile or a number, in psum or sbuf
    :param predicate: read, a tile, in psum or sbuf, uint16 or uint32 or uint8
    :param reverse_pred: a bool; False if left out

    Source: nki.isa.tensor_copy_predicated.
    """
tensor_engine: engine
def tensor_partition_reduce(dst: NkiTensor, op: Any, data: NkiTensor, name: str | None = ...) -> Any:
    """tensor_partition_reduce(dst, op, data, name=None)

    dst[i] = op folded over element i of all partitions of data.

    On gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in sbuf
    :param op: an operator
    :param data: read, a tile, in sbuf

    Source: nki.isa.tensor_partition_reduce.
    """
def tensor_reduce(dst: NkiTensor, op: Any, data: NkiTensor, axis: Any, negate: Any = ..., keepdims: Any = ..., name: str | None = ...) -> Any:
    """tensor_reduce(dst, op, data, axis, negate=False, keepdims=False, name=None)

    Folds the last dimensions of data with op: R consecutive elements in the stream of data become one in the stream of dst.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param op: an operator
    :param data: read, a tile, in psum or sbuf
    :param axis: a tuple of ints
    :param negate: a bool; False if left out
    :param keepdims: a bool; False if left out

    Source: nki.isa.tensor_reduce; NKI API common fields, legal reduction operators.
    """
def tensor_scalar(dst: NkiTensor, data: NkiTensor, op0: Any, operand0: NkiTensor | float | None, reverse0: Any = ..., op1: Any = ..., operand1: NkiTensor | float | None = ..., reverse1: Any = ..., engine: Any = ..., name: str | None = ...) -> Any:
    """tensor_scalar(dst, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, engine=engine.unknown, name=None)

    dst = (data op0 operand0) op1 operand1, each operand a number or one per partition.

    On vector, scalar, gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param data: read, a tile, in psum or sbuf
    :param op0: an operator
    :param operand0: read, a tile or a number or None, in psum or sbuf, one element per partition
    :param reverse0: a bool; False if left out
    :param op1: an operator or None; None if left out
    :param operand1: read, a tile or a number or None, in psum or sbuf, one element per partition; None if left out
    :param reverse1: a bool; False if left out
    :param engine: one of vector, scalar, gpsimd; chosen if left out

    Source: nki.isa.tensor_scalar; NKI API common fields, engine selection; Trainium2 architecture guide, Vector Engine Performance Mode.
    """
def tensor_scalar_cumulative(dst: NkiTensor, src: NkiTensor, op0: Any, op1: Any, imm0: NkiTensor | float, imm1: NkiTensor | float | None = ..., reduce_cmd: Any = ..., name: str | None = ...) -> Any:
    """tensor_scalar_cumulative(dst, src, op0, op1, imm0, imm1=None, reduce_cmd='reset_reduce', name=None)

    dst[i] = (src[i] op0 imm0) op1 dst[i - 1], starting from the accumulator.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's vector is busy for 592 ns.

    :param dst: write, a tile, in psum or sbuf, bfloat16 or float16 or float32 or float8_e4m3 or float8_e4m3fn or float8_e5m2 or int16 or int8 or uint16 or uint8
    :param src: read, a tile, in psum or sbuf, bfloat16 or float16 or float32 or float8_e4m3 or float8_e4m3fn or float8_e5m2 or int16 or int8 or uint16 or uint8
    :param op0: an operator
    :param op1: an operator
    :param imm0: read, a tile or a number, in psum or sbuf, one element per partition
    :param imm1: read, a tile or a number or None, in psum or sbuf, one element per partition; None if left out
    :param reduce_cmd: one of reset_reduce, reduce, load_reduce; 'reset_reduce' if left out

    Source: nki.isa.tensor_scalar_cumulative.
    """
def tensor_scalar_reduce(dst: NkiTensor, data: NkiTensor, op0: Any, operand0: NkiTensor | float | None, reduce_op: Any, reduce_res: NkiTensor | None = ..., reverse0: Any = ..., reduce_cmd: Any = ..., reduce_init: NkiTensor | float | None = ..., reduce_res_negate: Any = ..., name: str | None = ...) -> Any:
    """tensor_scalar_reduce(dst, data, op0, operand0, reduce_op, reduce_res=None, reverse0=False, reduce_cmd='reset_reduce', reduce_init=None, reduce_res_negate=False, name=None)

    dst = data op0 operand0. reduce_cmd selects how the results of a partition, folded with reduce_op, update the accumulators, which are then copied to reduce_res.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param dst: write, a tile, in psum or sbuf
    :param data: read, a tile, in psum or sbuf
    :param op0: an operator
    :param operand0: read, a tile or a number or None, in psum or sbuf, one element per partition
    :param reduce_op: an operator
    :param reduce_res: write, a tile or None, in psum or sbuf, one element per partition; None if left out
    :param reverse0: a bool; False if left out
    :param reduce_cmd: one of reset_reduce, reduce, load_reduce; 'reset_reduce' if left out
    :param reduce_init: read, a tile or a number or None, in psum or sbuf, one element per partition; None if left out
    :param reduce_res_negate: a bool; False if left out

    Source: nki.isa.tensor_scalar_reduce.
    """
def tensor_tensor(dst: NkiTensor, data1: NkiTensor, data2: NkiTensor, op: Any, engine: Any = ..., name: str | None = ...) -> Any:
    """tensor_tensor(dst, data1, data2, op, engine=engine.unknown, name=None)

    dst = data1 op data2, element by element.

    On vector, gpsimd, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's vector is busy for 592 ns.

    :param dst: write, a tile, in psum or sbuf
    :param data1: read, a tile, in psum or sbuf
    :param data2: read, a tile, in psum or sbuf
    :param op: an operator
    :param engine: one of vector, gpsimd; chosen if left out

    Source: nki.isa.tensor_tensor; NKI API common fields, math operators; Trainium2 architecture guide, Vector Engine Performance Mode.
    """
def tensor_tensor_scan(dst: NkiTensor, data0: NkiTensor, data1: NkiTensor, initial: NkiTensor | float, op0: Any, op1: Any, reverse0: Any = ..., reverse1: Any = ..., name: str | None = ...) -> Any:
    """tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False, name=None)

    dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i], starting from initial.

    On vector, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    On tiles of [128, 512] float32, trn2's vector is busy for 710 ns.

    :param dst: write, a tile, in psum or sbuf
    :param data0: read, a tile, in psum or sbuf
    :param data1: read, a tile, in psum or sbuf
    :param initial: read, a tile or a number, in psum or sbuf, one element per partition
    :param op0: an operator
    :param op1: an operator
    :param reverse0: a bool; False if left out
    :param reverse1: a bool; False if left out

    Source: nki.isa.tensor_tensor_scan.
    """
def topk(val_dst: NkiTensor, idx_dst: NkiTensor, src: NkiTensor, n: Any, name: str | None = ...) -> Any:
    """topk(val_dst, idx_dst, src, n, name=None)

    The k largest of the n elements in each 16 partitions of src, read down its columns, in ascending order, and their indices; in every partition of the 16.

    On gpsimd, trn1 and newer, since NKI 0.6. A tile on chip has at most 128 partitions.

    :param val_dst: write, a tile, in sbuf, bfloat16
    :param idx_dst: write, a tile, in sbuf, uint32
    :param src: read, a tile, in sbuf, bfloat16
    :param n: an int

    Source: nki.isa.topk.
    """
unknown_engine: engine
vector_engine: engine
