"""The closed world: an interpreter for Python syntax trees, independent of NKI.

Source is compiled to closures (`compile`), never to Python bytecode. The attributes of a value are
listed in tables (`Class.members`); an attribute that is not in a table does not exist. One budget
counts the syntax nodes evaluated and the bytes allocated for values.
"""
