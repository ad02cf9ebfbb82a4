"""Fault injection: `make faults`, or `python -m tests.faults [--limit N] [--write] [CASE ...]`.

Schedules and files of all samples are broken in every way that a bug of a stage could break them:
waits lost or too early, wrong addresses and offsets, neighbours exchanged, instructions left out
or there twice, edges lost. Each must be reported by a proof, the verifier or the runner, unless no
result changes.
"""
