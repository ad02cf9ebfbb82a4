# test: check
# args: a=float32[6,128,40]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    t = nl.ndarray((128, 4, 6), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
    t.slice(1, 2, 5)  # error[index-out-of-bounds]: slice 2:5
    t.slice(1, -1, 3)  # error[index-out-of-bounds]: slice -1:3
    t.slice(1, 3, 3)  # error[empty-slice]: 3:3
    t.slice(3, 0, 1)  # error[bad-dimension]: no dimension 3
    t.select(1, 4)  # error[index-out-of-bounds]: index 4
    t.permute((1, 0, 2))  # error[partition-dimension]: would move the partition dimension
    t.permute((0, 1))  # error[bad-dimension]: each of the dimensions 0 to 2 once
    t.broadcast(1, 8)  # error[broadcast-size]: has size 4
    t[0].broadcast(0, 8)  # error[partition-dimension]: dimension 0
    t.expand_dim(0)  # error[partition-dimension]: dimension 0
    t.expand_dim(4)  # error[bad-dimension]: no dimension 4
    t.squeeze_dim(1)  # error[broadcast-size]: has size 4
    t[0].squeeze_dim(0)  # error[partition-dimension]: dimension 0
    return a
