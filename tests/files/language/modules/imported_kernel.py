# test: check
# kernel: copied
# args: a=float32[128,64]
"""`-k` takes a kernel that the file imports."""
from helpers.kernels import copied
