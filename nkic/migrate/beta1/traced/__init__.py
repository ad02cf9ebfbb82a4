"""Implicit effects of Beta 1's tracing: loop bodies traced once, statements that masks skipped,
unreached branches.
"""
