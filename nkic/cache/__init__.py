"""A persistent cache of compiled artifacts, used by the command and from Python.

An entry is stored under a key derived from the request, and holds facts in JSON and the bytes of an
artifact. The caller checks whether it is still valid (the files that were read).
"""
