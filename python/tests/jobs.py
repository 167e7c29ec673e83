"""Functions that workers import: tasks that fail, and drivers to be killed."""

import functools
import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

from pagelab.distributed.sweeps import simulate

# Seconds that a test waits for what must come: only one that hangs waits so long.
DEADLINE = 600
# Tasks of a gate that need not wait.
FREE = 4

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


def until(what, answer):
    """Waits for an answer that is true, and returns it."""
    deadline = time.monotonic() + DEADLINE
    while not (found := answer()):
        assert time.monotonic() < deadline, f"in vain waited for {what}"
        time.sleep(0.01)
    return found


def is_taken(ticket):
    """Takes a ticket that nobody else has."""
    try:
        ticket.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def gated(gate, cases):
    """The task of a sweep: the first few are done, the others wait for the gate to be opened."""
    if next(nth for nth in itertools.count() if is_taken(Path(gate) / str(nth))) >= FREE:
        until("the gate", (Path(gate) / "open").exists)
    return simulate(cases)


if __name__ == "__main__":
    # A driver that somebody kills: FOLDER POINTS [ADDRESS].
    import jobs

    from pagelab.distributed import engine, sweeps

    engine.CONNECT_SECONDS = DEADLINE
    sweeps.simulate = functools.partial(jobs.gated, str(Path(sys.argv[1]) / "gate"))
    sweeps._points_each = lambda cases, slots: int(sys.argv[2])
    on = sys.argv[3] if len(sys.argv) > 3 else 2
    swept = sweeps.sweep(AXES, sys.argv[1], fixed=FIXED, on=on)
    print(json.dumps(len(swept.rows)))
