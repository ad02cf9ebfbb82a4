"""Beta 1, `neuronxcc.nki`: index expressions, masks, and functions that return tiles.

It is a front end only: all of it records the instructions of the table, as later versions do.
"""
