"""The closed world: an interpreter of Python over the syntax tree. It knows nothing of NKI.

Source is compiled to closures (`compile`), never to Python's own code. What a value offers is
in tables (`Class.members`); what is not in a table does not exist. One budget counts the nodes
that are evaluated and the bytes that values take.
"""
