"""Passes over recorded bodies of Beta 1: loop-carried dependences, spills, broadcasts of rows."""
