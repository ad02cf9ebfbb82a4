"""Encoding and decoding of a file's sections, which are sequences of msgpack records."""
