"""Tasks on workers: retries, and results as they come.

The one idea: processes of this machine and a Dask cluster are both an executor, so there is one
loop. What a death of a worker is, and whose, is the one thing that they do not say alike: all tasks
that it held are tried again alone, so that only the one that kills its worker is blamed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from .folder import Folder, warn

Progress = Callable[[int, int], None]
# How long a scheduler may take to answer.
CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Task:
    """A piece of work: its name, what the function is called with, and what it is, for people."""

    name: str
    arguments: tuple[Any, ...]
    what: str = ""


class Lost(RuntimeError):
    """Tasks that could not be done, after all others were; `tasks` has each with its reason."""

    def __init__(self, tasks: dict[str, str], where: object) -> None:
        self.tasks = tasks
        lines = "".join(f"\n  {name}: {why}" for name, why in tasks.items())
        super().__init__(f"{len(tasks)} tasks could not be done; all others are in {where}{lines}")


class Gone(ConnectionError):
    """The cluster went away; the same call goes on with what is missing."""


@dataclass
class Here:
    """This process itself."""

    slots: int = 1
    deaths: tuple[type[BaseException], ...] = ()

    def executor(self) -> Executor:
        """An executor that does a task when it is handed over."""
        return _Now()

    def gone(self) -> str | None:
        """This process does not go away."""
        return None


class _Now(Executor):
    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any
    ) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **keywords))
        except Exception as error:  # handed on, as every executor does
            future.set_exception(error)
        return future


def die_with(parent: int) -> None:
    """Ends this process when its parent ends, also where that is killed (prctl(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


@dataclass
class Processes:
    """Processes of this machine."""

    slots: int
    deaths: tuple[type[BaseException], ...] = (BrokenProcessPool,)

    def executor(self) -> Executor:
        """Fresh processes, spawned: one that is forked while threads run may hang."""
        context = get_context("spawn")
        return ProcessPoolExecutor(
            self.slots, mp_context=context, initializer=die_with, initargs=(os.getpid(),)
        )

    def gone(self) -> str | None:
        """This machine does not go away."""
        return None


@dataclass
class Cluster:
    """The workers of a Dask cluster, or some of them, by what a task takes of their resources."""

    client: Any
    workers: list[str] | None = None
    takes: dict[str, int] | None = None
    deaths: tuple[type[BaseException], ...] = field(init=False)
    address: str = field(init=False)

    def __post_init__(self) -> None:
        from distributed.scheduler import KilledWorker

        self.deaths = (KilledWorker,)
        self.address = self.client.scheduler.addr if self.client.scheduler else "nowhere"

    @property
    def slots(self) -> int:
        """Threads of all workers."""
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        return sum(
            worker["nthreads"]
            for address, worker in known.items()
            if self.workers is None or address in self.workers
        )

    def executor(self) -> Executor:
        """Dask's own, by which keys follow from what is asked."""
        only: dict[str, Any] = {} if self.takes is None else {"resources": self.takes}
        if self.workers is not None:
            only |= {"workers": self.workers, "allow_other_workers": False}
        executor: Executor = self.client.get_executor(pure=False, **only)
        return executor

    def gone(self) -> str | None:
        """Why nothing more can come, where that is so."""
        # A client that lost its scheduler looks for it a while, and then gives up.
        while self.client.status == "connecting":
            time.sleep(0.1)
        if self.client.status == "running":
            return None
        return f"the cluster at {self.address}"


def workers(on: Any) -> Here | Processes | Cluster:
    """Who does the work; see the package."""
    if on is None:
        return Processes(len(os.sched_getaffinity(0)))
    if isinstance(on, int):
        return Processes(on) if on > 0 else Here()
    if isinstance(on, (Here, Processes, Cluster)):
        return on
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "a cluster needs Dask: pip install 'dask[distributed]'; without it, "
            "`on` may be a number of processes"
        ) from None
    if isinstance(on, str):
        try:
            connect: Any = Client
            on = connect(on, timeout=CONNECT_SECONDS)
        except OSError as error:
            raise Gone(f"no scheduler answers at {on}: {error}") from error
    if not isinstance(on, Client):
        raise TypeError(f"`on` is a number, an address or a Dask client, not {type(on).__name__}")
    return Cluster(on)


def carry_out(
    function: Callable[..., bytes],
    tasks: Sequence[Task],
    folder: Folder,
    on: Any = None,
    retries: int = 2,
    progress: Progress | None = None,
) -> Iterator[tuple[Task, bytes]]:
    """The result of every task, those first that are there already, the others as they come.

    Raises Lost after all others, where some could not be done; Gone where the cluster went away.
    """
    names = [task.name for task in tasks]
    folder.tell_foreign(names)
    tell = progress or _Told()
    done, left = 0, []
    for task in tasks:
        body = folder.read(task.name)
        if body is None:
            left.append(task)
            continue
        done += 1
        yield task, body
    tell(done, len(tasks))
    if not left:
        return
    lost: dict[str, str] = {}
    for task, came in _results(function, left, workers(on), retries, folder.path):
        if isinstance(came, BaseException):
            lost[task.name] = f"{task.what}: {came}" if task.what else str(came)
            continue
        folder.keep(task.name, came)
        done += 1
        tell(done, len(tasks))
        yield task, came
    if lost:
        raise Lost(lost, folder.path)


def _results(
    function: Callable[..., Any],
    tasks: Iterable[Task],
    on: Here | Processes | Cluster,
    retries: int,
    folder: Path,
) -> Iterator[tuple[Task, Any]]:
    tries: dict[str, int] = {}
    suspects: deque[Task] = deque()

    def judged(task: Task, error: BaseException) -> bool:
        """Whether a task that failed is tried again."""
        tries[task.name] = tries.get(task.name, 0) + 1
        # What makes no sense makes none the next time.
        return not isinstance(error, (ValueError, TypeError)) and tries[task.name] <= retries

    waiting = deque(tasks)
    while waiting:
        held: dict[Future[Any], Task] = {}
        executor = on.executor()
        if on.slots == 0:
            warn("the cluster has no workers: it waits for some")
        # One more than there are slots: nobody waits for the driver, and a death costs little.
        most = max(1, on.slots) + 1 if not isinstance(on, Here) else 1
        try:
            broken = False
            while held or (waiting and not broken):
                while waiting and len(held) < most and not broken:
                    task = waiting.popleft()
                    try:
                        held[executor.submit(function, *task.arguments)] = task
                    except on.deaths:
                        waiting.appendleft(task)
                        broken = True
                    except Exception as error:
                        _still_there(on, folder, error)
                        raise
                ready, _ = wait(held, timeout=1, return_when=FIRST_COMPLETED)
                _still_there(on, folder)
                for future in ready:
                    task = held.pop(future)
                    try:
                        yield task, future.result()
                    except on.deaths:
                        suspects.append(task)
                        broken = broken or isinstance(on, Processes)
                    except CancelledError as error:
                        _still_there(on, folder, error)
                        suspects.append(task)
                    except Exception as error:  # told by name at the end
                        if judged(task, error):
                            waiting.append(task)
                        else:
                            yield task, error
        finally:
            _end(executor, held)
        while suspects:
            yield from _alone(function, suspects.popleft(), on, retries, folder)


def _alone(
    function: Callable[..., Any],
    task: Task,
    on: Here | Processes | Cluster,
    retries: int,
    folder: Path,
) -> Iterator[tuple[Task, Any]]:
    """A task whose worker may have died of it, with nothing beside it."""
    alone = Processes(1) if isinstance(on, Processes) else on
    for attempt in range(retries + 1):
        executor = alone.executor()
        try:
            future = executor.submit(function, *task.arguments)
            while not future.done():
                wait([future], timeout=1)
                _still_there(on, folder)
            yield task, future.result()
            return
        except on.deaths:
            warn(f"{task.what or task.name}: its worker died, {attempt + 1} times")
        except Exception as error:  # told by name at the end
            yield task, error
            return
        finally:
            _end(executor, ())
    yield task, RuntimeError(f"its worker died in each of {retries + 1} tries")


def _end(executor: Executor, held: Iterable[Future[Any]]) -> None:
    # Of a cluster that went away nothing can be taken back.
    with suppress(Exception):
        for future in held:
            future.cancel()
        executor.shutdown(wait=False)


def _still_there(
    on: Here | Processes | Cluster, folder: Path, error: BaseException | None = None
) -> None:
    gone = on.gone()
    if gone:
        raise Gone(
            f"{gone} went away; what is done is in {folder}: the same call goes on"
        ) from error


class _Told:
    """Says once a second how far it is, where a person sees it."""

    def __init__(self) -> None:
        self.next = 0.0
        self.is_seen = sys.stderr.isatty()

    def __call__(self, done: int, of: int) -> None:
        if self.is_seen and (time.monotonic() >= self.next or done == of):
            self.next = time.monotonic() + 1
            print(f"\r{done} of {of} tasks", end="\n" if done == of else "", file=sys.stderr)
