"""Tests of the judge of candidates."""
