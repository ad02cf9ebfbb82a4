"""Limits on the nesting of source and the length of names; Python's own limits where it has one.

They bound the recursion of later stages: a tree nests at most `MAX_NESTING` deep, except for the
chains named in `nkic.syntax.nodes`. docs/language.md lists them all.
"""

MAX_BRACKETS = 200  # open brackets and f-string fields
MAX_BLOCKS = 100  # levels of indentation
MAX_FIELDS = 3  # fields within the formats of one f-string's fields
MAX_NESTING = 2000  # symbols on the parser's stack: also `not not …`, `x if a else …`
MAX_NAME = 255  # characters of a non-ASCII name: normalisation takes quadratic time
