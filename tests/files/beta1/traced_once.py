# test: compile
# args: a=float32[2,128,64]
"""Numbers that the body of a loop changes are those of before, and the loop says so."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    at = 0
    for i in nl.affine_range(2):  # warning[traced-once]: `at` is a number that the body
        nl.store(out[i], nl.load(a[i]) + at)  # warning[result-not-read]: `out`, which dma_copy overwrites
        at += 1
    for i in nl.static_range(2):
        at += 1
    for i in nl.affine_range(2):
        at = 64 * i
        end = at + 64
        for j in range(2):
            start = end - at
            nl.store(out[i, :, 0:start], nl.load(a[i, :, 0:start]))  # warning[result-not-read]: `out`, which dma_copy overwrites
    for i in nl.sequential_range(2):  # warning[traced-once]: `at` is a number that the body
        if at:
            nl.store(out[i], nl.load(a[i]))  # warning[result-not-read]: `out`, which dma_copy overwrites
            end = at
        at = 1
    for i in nl.sequential_range(2):  # warning[traced-once]: `end` is a number that the body
        nl.store(out[i], nl.load(a[i]) + end)
        end = end + 1
    return out
