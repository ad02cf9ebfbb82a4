"""What Beta 1's tracing did by itself: loops whose bodies were traced once, statements that masks
left out, branches that nobody came to.
"""
