"""How deep source may nest, and how long a name may be. Python's own limits where it has one.

They bound the recursion of later stages: a tree nests at most `MAX_NESTING` deep, except for
the chains named in `nkic.syntax.nodes`. docs/language.md lists them all.
"""

MAX_BRACKETS = 200  # open brackets and f-string fields
MAX_BLOCKS = 100  # levels of indentation
MAX_FIELDS = 3  # fields within the formats of one f-string's fields
MAX_NESTING = 2000  # symbols waiting on the parser's stack: also `not not …`, `x if a else …`
MAX_NAME = 255  # characters of a name that is not ASCII: normal forms take quadratic time
