"""The same work over many processes or machines.

The one idea: a task is a name and what to do; what comes of it is a file of that name in a folder
of yours, written whole or not at all. So whatever dies (a worker, the driver, the cluster), the
same call goes on with what is missing, and the result is the same.

`sweep` simulates many points, `trace_stats` looks at one big trace in shards, `fleet` carries out a
plan of ``pagelab fleet plan``. Each takes `on`, who does the work:

- nothing: a process for each CPU of this machine; a number: so many; 0: this process.
- a Dask client, or the address of a scheduler (``"tcp://host:8786"``). However the cluster came to
  be: LocalCluster, SSHCluster, dask-jobqueue, Kubernetes. Workers need this wheel, of one version.

A program that uses processes must be importable: below ``if __name__ == "__main__":``, as with
`multiprocessing`. A task whose worker died is tried again, alone, `retries` times; then it is
named, after all others are done (`Lost`).
"""

from .engine import Gone, Lost
from .measured import fleet
from .shards import trace_stats
from .sweeps import Range, Swept, sweep

__all__ = ["Gone", "Lost", "Range", "Swept", "fleet", "sweep", "trace_stats"]
