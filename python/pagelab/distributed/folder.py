"""The folder of a job: what it is of, and a file for each task that is done.

The one idea: the folder is all that is remembered. A result is written beside and renamed, and
begins with the digest of what follows, so that one that was cut off or changed is told from one
that is whole. One driver at a time works in a folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import __version__

JOB = "job.json"
LOCK = ".driver.lock"
ENDING = ".result"


def digest(of: Any) -> str:
    """The name of a task: a digest of everything that it is, and of the version that does it."""
    text = json.dumps([__version__, of], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def digest_of_file(path: str | os.PathLike[str]) -> str:
    """The digest of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, content: bytes) -> None:
    """Writes a file whole, or not at all, also through a loss of power."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with open(beside, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def warn(what: str) -> None:
    """Tells a person."""
    print(f"pagelab: {what}", file=sys.stderr, flush=True)


class Folder:
    """A folder that this process alone writes results into, as long as it is open."""

    def __init__(self, path: str | os.PathLike[str], kind: str, asked: Any) -> None:
        """Opens or makes it. What is `asked` must be what it was made for, and plain data.

        Raises ValueError where it is of something else, BlockingIOError where another driver works
        in it.
        """
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / LOCK).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise BlockingIOError(
                f"{self.path}: another driver works in this folder; wait for it, or name another"
            ) from None
        job = {"pagelab": __version__, "kind": kind, "asked": asked}
        job = json.loads(json.dumps(job))
        try:
            self._open(job)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, job: dict[str, Any]) -> None:
        path = self.path / JOB
        if path.exists():
            try:
                known = json.loads(path.read_text())
                self.cut = known["cut"]
                known = {key: known[key] for key in job}
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"{path} is no job of pagelab's: choose another folder") from None
            if known["pagelab"] != __version__:
                raise ValueError(
                    f"{self.path} was begun by pagelab {known['pagelab']}, this is {__version__}: "
                    "go on with that one, or choose another folder"
                )
            if known != job:
                raise ValueError(
                    f"{self.path} holds results of something else: choose another folder"
                )
        else:
            if any(self.path.glob(f"*{ENDING}")):
                raise ValueError(
                    f"{self.path} holds results without a {JOB}: choose another folder"
                )
            self.cut = None
        self._job = job

    def settle(self, cut: Any) -> None:
        """Decides for good how the job is cut into tasks; asked again, `cut` is what it was."""
        if self.cut is None:
            self.cut = cut
            text = json.dumps({**self._job, "cut": cut}, indent=1)
            write(self.path / JOB, text.encode())

    def keep(self, name: str, body: bytes) -> None:
        """Keeps the result of a task."""
        mark = hashlib.sha256(body).hexdigest().encode()
        write(self.path / (name + ENDING), mark + b"\n" + body)

    def read(self, name: str) -> bytes | None:
        """The result of a task; None where there is none that is whole."""
        path = self.path / (name + ENDING)
        try:
            mark, _, body = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if mark == hashlib.sha256(body).hexdigest().encode():
            return body
        aside = path.with_name(path.name + ".damaged")
        os.replace(path, aside)
        warn(f"{aside} is damaged: its task is done again")
        return None

    def tell_foreign(self, names: Sequence[str]) -> None:
        """Warns of results that are of no task here; they are left alone."""
        known = {name + ENDING for name in names}
        for path in sorted(self.path.glob(f"*{ENDING}")):
            if path.name not in known:
                warn(f"{path} is the result of no task of this job: it is left alone")

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()
