"""Beta 1, `neuronxcc.nki`: index expressions, masks, and functions that return tiles.

It is only a front end: everything is recorded as instructions of the table, as in later versions.
"""

ROOT = "neuronxcc"
MODULES = tuple(
    f"{ROOT}{remaining}"
    for remaining in (
        *("", ".nki", ".nki.language", ".nki.isa", ".nki.compiler", ".nki.typing"),
        *(".nki.isa.constants", ".nki.language.constants"),
    )
)
