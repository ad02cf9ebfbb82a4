# Written by `python -m nkic.nki.stubs` from nkic's tables.
import builtins
from enum import Enum, IntEnum
from typing import Any
from nki.language import NkiTensor

class ReplicaGroup:
    """Groups of ranks that exchange data with each other: `ReplicaGroup([[0, 1], [2, 3]])`."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
def all_gather(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, priority: Any = ..., name: Any = ...) -> Any:
    """dst = the src of all ranks of the group, one after the other along collective_dim."""
def all_gather_v(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: Any = ..., has_rdispls: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """dst = a chunk of src of each rank, its length and place in metadata_tensor, in slots."""
def all_gather_v_prepare(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: Any = ..., has_rdispls: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """Takes the counts in metadata_tensor, by which the second half of all_gather_v goes."""
def all_gather_v_trigger(prepare_instr: Any, name: Any = ...) -> Any:
    """all_gather_v, by the counts that all_gather_v_prepare took."""
def all_reduce(srcs: Any, dsts: Any, replica_group: Any, op: Any, priority: Any = ..., name: Any = ...) -> Any:
    """dst = op over the src of all ranks of the group, in float32, in the order of the group."""
def all_to_all(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, priority: Any = ..., name: Any = ...) -> Any:
    """Part i of src, split in dimension 0, goes to rank i of the group; dst = what comes."""
def all_to_all_v(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: Any = ..., has_rdispls: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """Chunks of src, their lengths and places in metadata_tensor, go to each rank."""
def all_to_all_v_prepare(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: Any = ..., has_rdispls: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """Takes the counts in metadata_tensor, by which the second half of all_to_all_v goes."""
def all_to_all_v_trigger(prepare_instr: Any, name: Any = ...) -> Any:
    """all_to_all_v, by the counts that all_to_all_v_prepare took."""
def collective_permute(srcs: Any, dsts: Any, source_target_pairs: Any, priority: Any = ..., name: Any = ...) -> Any:
    """dst = the src of the rank that has this one as its target; else it is left as it is."""
def collective_permute_implicit(srcs_by_channel: Any, dsts_by_channel: Any, replica_group: Any, channel_ids: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """dst = the src of the rank before this one in the ring that the group is."""
def collective_permute_implicit_current_processing_rank_id(iteration_id: Any, replica_group: Any, channel_id: Any = ..., name: str | None = ...) -> Any:
    """collective_permute_implicit_current_processing_rank_id(iteration_id, replica_group, channel_id=0, name=None)
    
    A register with the rank whose data are here after so many steps around the ring.
    
    On sync, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    
    :param iteration_id: an int
    :param replica_group: a list of lists of ranks
    :param channel_id: an int; 0 if left out
    
    Source: nki.collectives.collective_permute_implicit_current_processing_rank_id."""
def collective_permute_implicit_reduce(srcs0_by_channel: Any, srcs1_by_channel: Any, dsts_by_channel: Any, replica_group: Any, op: Any, channel_ids: Any = ..., priority: Any = ..., name: Any = ...) -> Any:
    """dst = op(src0, src1), in float32, of the rank before this one in the ring."""
def rank_id(name: str | None = ...) -> Any:
    """rank_id(name=None)
    
    A register with the number of this rank.
    
    On sync, trn1 and newer, since NKI beta2. A tile on chip has at most 128 partitions.
    
    
    Source: nki.collectives.rank_id."""
def reduce_scatter(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, op: Any, priority: Any = ..., name: Any = ...) -> Any:
    """dst = this rank's part of op over the src of all ranks, which is split in dimension 0."""
