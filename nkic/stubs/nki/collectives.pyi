# Written by `python -m nkic.nki.stubs` from nkic's tables.
import builtins
from enum import Enum, IntEnum
from typing import Any
from nki.language import NkiTensor

class ReplicaGroup:
    """Groups of ranks that exchange data with each other: `ReplicaGroup([[0, 1], [2, 3]])`."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
def all_gather(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, priority: Any = ..., name: Any = ...) -> Any:
    """dst = the src of all ranks of the group, concatenated along collective_dim."""
def all_gather_v(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: Any = ..., has_rdispls: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """dst = one slot per rank with a chunk of its src, as metadata_tensor places it."""
def all_gather_v_prepare(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: Any = ..., has_rdispls: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """Takes the counts in metadata_tensor for the second half of all_gather_v."""
def all_gather_v_trigger(prepare_instr: Any, name: Any = ...) -> Any:
    """all_gather_v with the counts taken by all_gather_v_prepare."""
def all_reduce(srcs: Any, dsts: Any, replica_group: Any, op: Any, priority: Any = ..., name: Any = ...) -> Any:
    """dst = op over the src of all ranks of the group, in float32, in the order of the group."""
def all_to_all(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, priority: Any = ..., name: Any = ...) -> Any:
    """Sends part i of src, split in dimension 0, to rank i of the group; dst = parts received."""
def all_to_all_v(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: Any = ..., has_rdispls: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """Sends a chunk of src to each rank; metadata_tensor holds their lengths and places."""
def all_to_all_v_prepare(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: Any = ..., has_rdispls: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """Takes the counts in metadata_tensor for the second half of all_to_all_v."""
def all_to_all_v_trigger(prepare_instr: Any, name: Any = ...) -> Any:
    """all_to_all_v with the counts taken by all_to_all_v_prepare."""
def collective_permute(srcs: Any, dsts: Any, source_target_pairs: Any, priority: Any = ..., name: Any = ...) -> Any:
    """dst = the src of the rank whose target is this rank; unchanged if there is none."""
def collective_permute_implicit(srcs_by_channel: Any, dsts_by_channel: Any, replica_group: Any, channel_ids: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """dst = the src of the previous rank in the ring that the group forms."""
def collective_permute_implicit_current_processing_rank_id(iteration_id: Any, replica_group: Any, channel_id: Any = ..., name: str | None = ...) -> Any:
    """collective_permute_implicit_current_processing_rank_id(iteration_id, replica_group, channel_id=0, name=None)

    Returns in a register the rank whose data are here after iteration_id steps of the ring.

    On sync, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.

    :param iteration_id: an int
    :param replica_group: a list of lists of ranks
    :param channel_id: an int; 0 if left out

    Source: nki.collectives.collective_permute_implicit_current_processing_rank_id.
    """
def collective_permute_implicit_reduce(srcs0_by_channel: Any, srcs1_by_channel: Any, dsts_by_channel: Any, replica_group: Any, op: Any, channel_ids: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """dst = op(src0, src1) of the previous rank in the ring, in float32."""
def rank_id(name: str | None = ...) -> Any:
    """rank_id(name=None)

    Returns the number of this rank in a register.

    On sync, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.


    Source: nki.collectives.rank_id.
    """
def reduce_scatter(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, op: Any, priority: Any = ..., name: Any = ...) -> Any:
    """dst = this rank's part of op over the src of all ranks, which is split in dimension 0."""
