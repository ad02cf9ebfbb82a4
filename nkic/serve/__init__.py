"""Services: the judge over HTTP (`app`), and nkic in an editor (`lsp`).

A request to the judge is a stranger's: its body is checked before it is believed, and what it may
hold, in bytes, candidates and evaluations in flight, has limits.
"""
