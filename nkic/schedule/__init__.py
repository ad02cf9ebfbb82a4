"""schedule: program and dependence graphs → streams ordered by semaphores.

`order` chooses each engine's sequence and each transfer's queue by list scheduling under the
target's costs; `semaphores` adds the waits that queue order does not already give. With `serial`,
everything runs in program order, one instruction after the other. `warn` reports accesses of two
cores to shared HBM that nothing orders.

Non-goals: choosing engines (lower does), moving instructions in or out of device loops, whose
iterations are separated by barriers.
"""

from nkic.schedule.races import warn
from nkic.schedule.stage import schedule

__all__ = ["schedule", "warn"]
