"""Resource limits of the commands, and their enforcement.

`table` lists the limits; `own` applies them to this process through the operating system; `watcher`
is a separate process that kills this one at its deadline, whatever it is doing; `watch` enforces
limits of a compilation inside any process, as far as Python's signals allow; `worker` starts a
process that answers requests under limits of its own.
"""
