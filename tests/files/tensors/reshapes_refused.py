# test: check
# args: a=float32[6,128,40]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    t = nl.ndarray((128, 4, 6), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
    t.reshape((128, 25))  # error[reshape-size]: from 3072 to 3200
    t.reshape((64, 48))  # error[partition-dimension]: from 128 to 64
    t.reshape((128, -1))  # error[bad-shape]: ints of at least 1
    t.permute((0, 2, 1)).reshape((128, 24))  # error[reshape-layout]: without a copy
    t[:, :, 0:3].flatten_dims(1, 2)  # error[reshape-layout]: without a copy
    t.reshape_dim(2, (4, -1))  # error[bad-shape]: -1
    t.reshape_dim(2, (2, 2))  # error[reshape-size]: does not split
    t.reshape_dim(0, (2, 64))  # error[partition-dimension]: dimension 0
    t.flatten_dims(0, 1)  # error[partition-dimension]: dimension 0
    t.flatten_dims(2, 1)  # error[bad-dimension]: from 2 up to 1
    t.rearrange(("p", "a"), ("a", "p"))  # error[bad-pattern]: has 2 dimensions
    t.rearrange(("p", "a", "b"), ("a", "p", "b"))  # error[partition-dimension]: move the partition
    t.rearrange(("p", "a", "b"), ("p", "a"))  # error[bad-pattern]: different dimensions
    t[:, :, 0:3].view(nl.int32).view(nl.uint8)[:, :, 0:6].view(nl.float32)  # error[dtype-view]: multiples
    t.permute((0, 2, 1)).view(nl.uint8)  # error[dtype-view]: stride 6
    t.view("flaot32")  # error[unknown-dtype]: flaot32
    return a
