"""Beta 1, `neuronxcc.nki`: index expressions, masks, and functions that return tiles.

It is a front end only: all of it records the instructions of the table, as later versions do.
"""

ROOT = "neuronxcc"
MODULES = tuple(
    f"{ROOT}{rest}"
    for rest in (
        *("", ".nki", ".nki.language", ".nki.isa", ".nki.compiler", ".nki.typing"),
        *(".nki.isa.constants", ".nki.language.constants"),
    )
)
