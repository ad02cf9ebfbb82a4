"""A cluster of nkic's workers on Slurm, for as long as this script runs.

pip install nkic distributed dask-jobqueue
python slurm.py 10
nkic evaluate task.toml candidates/ --cluster tcp://…:8786   # the address that it prints
"""

import os
import signal
import sys

SETTINGS = {
    "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "1.0",
}
os.environ.update(SETTINGS)  # before Dask is imported

from dask_jobqueue import SLURMCluster  # noqa: E402

if __name__ == "__main__":
    with SLURMCluster(
        queue="cpu",
        cores=16,  # of a job
        processes=16,  # one worker for each core, with one thread
        memory="80GiB",  # of a job: for each worker 1 GiB, and the task's limit of a candidate
        walltime="04:00:00",
        job_script_prologue=[f"export {name}={value}" for name, value in SETTINGS.items()],
        scheduler_options={"port": 8786},
    ) as cluster:
        cluster.scale(jobs=int(sys.argv[1]))
        print(cluster.scheduler_address, flush=True)
        signal.pause()
