"""Proofs that a file cannot make the runner misbehave."""

from nkic.neff.verify.program import check, refuse_unsound, verify, verify_ordered

__all__ = ["check", "refuse_unsound", "verify", "verify_ordered"]
