"""From what a user asks for to a result: the order in which the stages run, and what goes in.

Both commands and `nkic.api` drive the stages through this room. Nothing is imported here, so
that each user loads what it needs: compiling and running have no module in common.
"""
