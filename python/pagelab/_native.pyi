"""Types of the native half; what is for people is documented in `pagelab`."""

from collections.abc import Mapping, Sequence
from typing import Any, final

__all__ = [
    "VERSION",
    "Merger",
    "Plan",
    "Run",
    "Table",
    "part_of_trace",
    "replay",
    "simulate",
    "simulate_all",
    "sobol",
    "trace_stats",
]

VERSION: str

@final
class Table:
    """A table of named columns, for any library that takes Arrow's C stream."""

    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Run:
    """A run: its records, and its numbers as tables; itself the table of `numbers()`."""

    @staticmethod
    def load(path: str) -> Run: ...
    @property
    def name(self) -> str: ...
    @property
    def damage(self) -> str | None: ...
    @property
    def hosts(self) -> list[str]: ...
    def records(self) -> list[dict[str, Any]]: ...
    def numbers(self) -> Table: ...
    def observations(self) -> Table: ...
    def counters(self) -> Table: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Plan:
    """A plan of `pagelab fleet plan`."""

    @staticmethod
    def load(folder: str) -> Plan: ...
    @staticmethod
    def parse(text: str) -> Plan: ...
    @property
    def text(self) -> str: ...
    @property
    def shards(self) -> int: ...
    def tasks(self) -> list[tuple[str, bool, float]]:
        """Of each task its name, whether it is measured, and seconds that it takes, roughly."""
    def part(self, names: Sequence[str]) -> str:
        """The plan of some of its tasks, as text."""
    def carry_out(self) -> list[tuple[str, str]]:
        """Carries out all tasks here; of each the name of its file and what belongs into it."""
    @staticmethod
    def of_file(name: str) -> tuple[str, str] | None:
        """The task, and the host with its boot, whose result a file of this name would be."""
    @staticmethod
    def here() -> str:
        """This host with its boot, as names of results say it."""

_Parameters = Mapping[str, Any]
_Options = tuple[int, int, Sequence[int], int, bool]

@final
class Merger:
    """Puts shards of a trace together, in their order."""

    def __new__(cls, asked: _Options) -> Merger: ...
    def append(self, shard: bytes) -> int | None:
        """Adds the next one, or says at which byte it must begin."""
    def finish(self) -> str:
        """The statistics, as JSON."""

def simulate(point: _Parameters) -> list[dict[str, Any]]: ...
def simulate_all(points: Sequence[_Parameters]) -> list[list[dict[str, Any]] | str]: ...
def trace_stats(keywords: _Parameters) -> str: ...
def replay(keywords: _Parameters, budget: float) -> Run: ...
def sobol(dimensions: int, count: int) -> list[list[float]]: ...
def part_of_trace(path: str, start: int, end: int, exact: bool, options: _Options) -> bytes: ...
