"""Functions that workers import: tasks that fail, and drivers to be killed."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from pagelab.distributed.sweeps import simulate

FIXED = {"policy": "pghot", "size": "16m", "accesses": "100m"}
AXES = {
    "fast": [f"{share}%" for share in range(5, 55, 5)],
    "threshold": [1, 2, 3],
    "window": [100 * step for step in range(1, 35)],
}


def echo(number):
    """A task that does nothing."""
    return str(number).encode()


def dies_if(number, deadly):
    """A task that ends its process where its number is a deadly one."""
    if number in deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return str(number).encode()


def dies_once(number, folder):
    """A task that ends its process the first time."""
    mark = Path(folder) / str(number)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return str(number).encode()


def fails(number):
    """A task that always fails."""
    raise OSError(f"no luck with {number}")


def cannot():
    """What a worker without this wheel says."""
    raise ImportError("no wheel here")


def slowly(cases):
    """The task of a sweep, slow enough for somebody to kill it."""
    time.sleep(0.2)
    return simulate(cases)


def sleeps(number):
    """A task that takes a while."""
    time.sleep(0.3)
    return str(number).encode()


if __name__ == "__main__":
    # A driver that somebody kills: FOLDER POINTS [ADDRESS].
    from pagelab.distributed import sweeps

    sweeps.simulate = slowly
    sweeps._points_each = lambda cases, slots: int(sys.argv[2])
    on = sys.argv[3] if len(sys.argv) > 3 else 2
    swept = sweeps.sweep(AXES, sys.argv[1], fixed=FIXED, on=on)
    print(json.dumps(len(swept.rows)))
