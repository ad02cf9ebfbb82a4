"""schedule: program and dependence graphs → streams synchronised by semaphores.

`order` chooses the sequence of each engine and the queue of each transfer by list scheduling under
the target's costs; `semaphores` adds the waits that queue order does not already imply. With
`serial`, instructions run one at a time in program order. `warn` reports races between cores on
shared HBM.

Non-goals: choosing engines (lower does), moving instructions into or out of device loops.
"""

from nkic.schedule.races import warn
from nkic.schedule.stage import schedule

__all__ = ["schedule", "warn"]
