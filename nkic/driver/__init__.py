"""From a user's request to a result: the order of the stages, and their inputs.

Both commands and `nkic.api` run the stages through this package. Nothing is imported here, so that
each caller loads only what it needs: compiling and running share no module.
"""
