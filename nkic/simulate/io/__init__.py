"""Arrays for a kernel: from files (`nkic.arrays`) and generators, and their fit to a signature.

Nothing here trusts a file: what an array says of itself is compared with what the kernel takes
before its data is read, and no file can make the reader take more memory than the kernel does.
"""
