import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def convolution(x, w):
    """y[o, t] = sum over j, c of w[j, c, o] * x[c, t + j], in bfloat16.

    x[channels, length], w[taps, channels, outputs], y[outputs, length - taps + 1]; any sizes.
    """
    taps, channels, outputs = w.shape
    times = x.shape[1] - taps + 1
    y = nl.ndarray((outputs, times), dtype=x.dtype, buffer=nl.shared_hbm)
    # Your code: for each tap, a product with the signal shifted by it.
    return y
