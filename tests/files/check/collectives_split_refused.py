# test: check
# args: a=float32[128,512]
"""A collective in two halves: each prepare has one trigger, before the next prepare."""
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    src = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    counts = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.private_hbm)
    nisa.dma_copy(dst=counts, src=nl.zeros((3, 4), dtype=nl.uint32, buffer=nl.sbuf))
    nisa.dma_copy(dst=src, src=a)
    nisa.dma_copy(dst=out, src=a)
    groups = ncc.ReplicaGroup([[0, 64, 128, 192]])
    given = ([src], [out], groups, counts)
    ncc.all_to_all_v_trigger(given)  # error[argument-kind]: must be what ncc.all_to_all_v_prepare returned
    first = ncc.all_to_all_v_prepare(*given)  # error[collective]: this prepare has no matching ncc.all_to_all_v_trigger
    second = ncc.all_to_all_v_prepare(*given)
    ncc.all_to_all_v_trigger(first)  # error[collective]: an ncc.all_to_all_v_prepare that waits for its trigger
    ncc.all_gather_v_trigger(second)  # error[collective]: an ncc.all_gather_v_prepare that waits
    ncc.all_to_all_v_trigger(second)
    ncc.all_to_all_v_trigger(second)  # error[collective]: an ncc.all_to_all_v_prepare that waits for its trigger

    def body(i):
        ncc.all_to_all_v_trigger(third)  # error[collective]: trigger are in different device loops

    third = ncc.all_to_all_v_prepare(*given)  # error[collective]: this prepare has no matching ncc.all_to_all_v_trigger
    nl.fori_loop(0, 2, body)
    ncc.all_to_all_v_prepare([src], out, groups, counts)  # error[argument-kind]: must be a list of tensors
    ncc.all_to_all_v_prepare([src], [out], groups, 3)  # error[argument-kind]: `metadata_tensor` is 3, but must be a tensor
    failed = ncc.all_to_all_v_prepare([src], [out], groups, src)  # error[dtype-not-supported]: `metadata_tensor` is float32
    ncc.all_to_all_v_trigger(failed)  # error[dtype-not-supported]: `metadata_tensor` is float32
    return out
