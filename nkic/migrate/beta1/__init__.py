"""Sources of Beta 1: index expressions, masks and instructions that return tiles.

Sources: migration guide, 0.1.0 to 0.2.0; NKI's documentation up to SDK 2.26, indexing and masking.
"""
