"""Fault injection: `make faults`, or `python -m tests.faults [--limit N] [--write] [CASE ...]`.

Lowered programs, schedules and files of all samples are broken in every way in which a bug of a
stage could break them: other attributes, elements, engines or accumulation; waits that are lost or
too early, wrong addresses and offsets, exchanged neighbours, instructions left out or repeated,
lost edges. A proof, the verifier or the runner must report each fault, unless no result changes.
"""
