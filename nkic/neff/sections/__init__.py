"""The bytes of a file's sections, one msgpack record after the other, and what they stand for."""
