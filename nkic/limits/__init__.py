"""What the commands may take of the machine, and who sees to it.

`table` says how much; `own` asks the system to hold this process to it; `watcher` stands beside
the process and ends it when time is up, whatever it is doing; `watch` is the same for a
compilation inside of any process, as far as Python's own signals reach.
"""
