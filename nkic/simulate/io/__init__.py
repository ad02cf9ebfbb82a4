"""Arrays for a kernel: from files (`nkic.arrays`) and generators, matched to a signature.

Files are not trusted: an array's header is compared with the kernel's parameter before its data is
read, and no file can make the reader allocate more memory than the kernel does.
"""
