"""What tasks over workers cost beside plain loops; no test, since it is about time.

`python python/tests/cost.py [ROUNDS]`, with the wheel and Dask, on a machine that has nothing else
to do. Each round makes the same simulations by one plain process, by one worker, by two plain
processes side by side, and by two workers. Importing does not count; starting processes, trying
some points and drawing the page do, and what they take by themselves is said beside: a sweep of
one point has nothing else. The clusters are there.
"""

import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import jobs

import pagelab
from pagelab import distributed

# Simulations of some milliseconds, so many that one process has a quarter of a minute to do.
FIXED = {**jobs.FIXED, "size": "64m", "accesses": "1g"}
AXES = {**jobs.AXES, "window": [50 * step for step in range(1, 69)]}
ONE = {name: values[:1] for name, values in AXES.items()}


def plain(nth, of):
    """A share of the points in a loop."""
    start, points = time.monotonic(), itertools.product(*AXES.values())
    for values in itertools.islice(points, int(nth), None, int(of)):
        point = dict(zip(AXES, values, strict=True))
        pagelab.simulate(**point, **FIXED)
    print(time.monotonic() - start)


def sweep(on, axes=AXES):
    """All of them by workers."""
    if on.isdigit():
        on = int(on)
    else:
        # Here, for whoever is spawned imports this file, too.
        from distributed import Client

        on = Client(on)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        distributed.sweep(axes, folder, fixed=FIXED, on=on)
    print(time.monotonic() - start)


def start(on):
    """What a sweep takes that has next to nothing to do."""
    sweep(on, ONE)


def timed(*commands):
    """Seconds that commands take side by side, by the clock and of processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [
        subprocess.Popen([sys.executable, __file__, *command], stdout=subprocess.PIPE)
        for command in commands
    ]
    seconds = [float(process.communicate()[0]) for process in running]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return max(seconds), used


def main(rounds):
    """Prints the ratios of each round, and their medians."""
    from distributed import LocalCluster

    kept = {}

    def keep(name, value):
        kept.setdefault(name, []).append(value)
        print(f"{name}: {value:.2f}", flush=True)

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as one,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as two,
    ):
        for _ in range(rounds):
            serial, used = timed(["plain", "0", "1"])
            seconds, of_workers = timed(["sweep", "1"])
            keep("one process, time over serial", seconds / serial)
            keep("one process, processor time over serial", of_workers / used)
            seconds, _ = timed(["sweep", one.scheduler_address])
            keep("one Dask worker, time over serial", seconds / serial)
            pair, used = timed(["plain", "0", "2"], ["plain", "1", "2"])
            seconds, of_workers = timed(["sweep", "2"])
            keep("two processes, speed over two plain ones", pair / seconds)
            keep("two processes, processor time over two plain ones", of_workers / used)
            seconds, _ = timed(["sweep", two.scheduler_address])
            keep("two Dask workers, speed over two plain processes", pair / seconds)
            keep("start of processes, seconds", timed(["start", "2"])[0])
            keep("start of a job on Dask, seconds", timed(["start", two.scheduler_address])[0])
            load = os.getloadavg()[0]
            print(f"load {load:.1f}, serial {serial:.1f} s, two {pair:.1f} s\n", flush=True)
    for name, values in kept.items():
        told = ", ".join(f"{value:.2f}" for value in values)
        print(f"{name}: median {statistics.median(values):.2f} of {told}")


if __name__ == "__main__":
    parts = {"plain": plain, "sweep": sweep, "start": start}
    what, *words = sys.argv[1:] or ["3"]
    if what in parts:
        parts[what](*words)
    else:
        main(int(what))
