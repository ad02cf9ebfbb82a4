"""Files of arrays: npz, npy and raw bytes read as untrusted input, and npz written.

Both tools read them: nki-run for inputs, nkic for the types of arguments. A file's claims about its
arrays are checked against its actual bytes before any data is read.
"""
