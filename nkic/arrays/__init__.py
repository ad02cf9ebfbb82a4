"""Files of arrays: npz, npy and raw bytes, read without trust, and npz written.

Both tools read them: nki-run as inputs, nkic for the types of arguments. What a file says of its
arrays is compared with the bytes that are there before any data is read.
"""
