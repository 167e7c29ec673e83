"""Parts that all scores share: options, programs, commands, JSON and statistics.

The scores need Python 3.11 or newer and no package.
"""

import argparse
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = tomllib.loads(Path(__file__).with_name("programs.toml").read_text())["program"]
MOST = ["--rounds", "1000"]  # more than any budget allows
# The options of scores that compare variants of `try`.
VARIANTS = {
    "rung": ("", "these rungs of try only; some change settings of the machine for a run"),
    "beside": (False, "time malloc's tunable by hyperfine as well"),
}
# The variant that hyperfine can time too, since it is one environment variable.
THP, TUNED = "malloc-thp", "env GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "
# Touches more memory than any program has, before each run: a host may have taken it away.
WARM = TUNED + "/usr/bin/python3 -c 'many = 1 << 30; bytes([1]) * many'"


class Failure(SystemExit):
    """An error that ends a score, or one program of it, with its fix where there is one."""


class Json(dict[str, Any]):
    """An object of JSON in which a missing value, or null, is an empty object."""

    def __missing__(self, key: str) -> Any:
        return Json()


def parsed(text: str) -> Any:
    """Returns JSON, with nulls left out."""
    return json.loads(
        text, object_pairs_hook=lambda pairs: Json(pair for pair in pairs if pair[1] is not None)
    )


def journal(run: Path) -> list[Any]:
    """Returns the records of a run."""
    return [parsed(line) for line in (run / "journal.jsonl").read_text().splitlines()[1:]]


def first(objects: Any, **wanted: str) -> Any:
    """Returns the first object that has these values."""
    return next((one for one in objects if wanted.items() <= one.items()), Json())


def ends(quantity: Any) -> list[float]:
    """Returns a quantity and the ends of its interval; nothing where one is missing."""
    found = [quantity[end] for end in ("value", "low", "high")]
    return [] if {} in found else found


def against(report: Any, variant: str) -> Any:
    """Returns the verdict on a variant beside the program as it is set up, and the ratio."""
    return first(report["tried"]["rungs"], rung=variant)["beside_what_is_set_up"]


def interval(values: list[float]) -> list[float]:
    """Returns the 95 % interval of the median by order statistics; nothing of fewer than six."""
    ordered = sorted(values)
    below, chance = 0, 1  # of 2 ** count outcomes: at most `below` values are under the median
    while chance * 40 <= 2 ** len(ordered):
        below += 1
        chance += math.comb(len(ordered), below)
    return [ordered[below - 1], ordered[-below]] if below else []


def orders(count: int) -> Iterator[tuple[int, int]]:
    """Yields the orders in which two things are measured in turns: A B, B A, and so on."""
    yield from ((nth % 2, 1 - nth % 2) for nth in range(count))


def parse(about: str | None, name: str, budget: float = 0, **more: tuple[Any, str]) -> Any:
    """Returns the options of a score; a default gives its option the type, False makes a flag."""
    known: dict[str, tuple[Any, str]] = {
        "dir": (ROOT / "target" / name, "where results are kept; what is there is not done again"),
        "binary": (str(ROOT / "target/release/pagelab"), "the pagelab to measure with"),
    }
    if budget:
        known["budget"] = budget, "seconds for each run of try"
        known["only"] = "", "this program only, by its name"
    parser = argparse.ArgumentParser(description=about)
    for option, (default, text) in (known | more).items():
        typed: Any = {"type": type(default), "default": default}
        form = {"action": "store_true"} if default is False else typed
        parser.add_argument(f"--{option}", help=text + f" ({default})" * bool(default), **form)
    options = parser.parse_args()
    if (found := shutil.which(options.binary)) is None:
        parser.error(f"{options.binary} is no program; to build it: cargo build --release")
    if getattr(options, "beside", False) and shutil.which("hyperfine") is None:
        parser.error("--beside: hyperfine is not installed: apt install hyperfine")
    options.binary, options.dir = os.path.abspath(found), options.dir.absolute()
    options.work = options.dir / "work"
    options.work.mkdir(parents=True, exist_ok=True)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return options


def output(command: Sequence[str], accepted: Sequence[int] = (0,), cwd: Path = ROOT) -> str:
    """Returns what a command prints; fails if it ends with another exit code than these."""
    if shutil.which(command[0]) is None:
        raise Failure(f"{command[0]} is not installed: apt install {command[0]}")
    null = subprocess.DEVNULL
    done = subprocess.run(command, cwd=cwd, stdin=null, capture_output=True, text=True)
    if done.returncode not in accepted:
        raise Failure(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def kept(file: Path, make: Callable[[], str]) -> Any:
    """Returns the JSON of a file; a missing file is made first, whole or not at all."""
    if not file.exists():
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(json.loads(make())))
        unfinished.rename(file)
    return parsed(file.read_text())


def results(
    options: Any, score: str, flags: list[str], heading: str = "", runs: Sequence[str] = ("",)
) -> Iterator[Any]:
    """Yields each program that is installed, with its reports of `try`, one for each run."""
    table = {row["name"]: row for row in PROGRAMS if score in row["scores"]}
    if options.only and options.only not in table:
        raise Failure(f"--only is one of {', '.join(table)}")
    here, options.missing, options.failed, options.timed = [], [], [], []
    for row in [table[options.only]] if options.only else table.values():
        try:
            output(["sh", "-ec", f"command -v {row['needs']}; {row.get('check', '')}"])
            here.append(row)
        except Failure:
            options.missing.append(row)
            print(f"skipped: {row['name']} is not here: {row['fix']}")
    print(heading + "\n" * bool(heading), end="")
    for row in here:
        row["argv"] = [word.replace("@root@", str(ROOT)) for word in row["command"]]
        try:
            reports = [tried(options, row, row["name"] + run, flags) for run in runs]
            options.timed += hyperfine(options, row, reports) if "beside" in options else []
        except (Failure, OSError, ValueError) as why:
            print(f"failed: {row['name']}: {why}", file=sys.stderr)
            options.failed.append(row["name"])
        else:
            yield row, *reports


def tried(options: Any, row: Any, name: str, flags: list[str]) -> Any:
    """Returns the report of `pagelab try`, kept as NAME.json; its run is the folder NAME."""

    def make() -> str:
        print(f"{row['name']} ({row['kind']})", file=sys.stderr)
        output(["sh", "-ec", row.get("prepare", "")], cwd=options.work)
        shutil.rmtree(options.dir / name, ignore_errors=True)  # of a call that was interrupted
        command = [options.binary, "try", "-q", "--wait", "--format", "json", *flags]
        command += ["-o", str(options.dir / name), "--budget", f"{options.budget:g}"]
        more = {key: row[key] for key in ("input", "own") if key in row}
        more |= dict(zip(("ready", "until", "score"), row.get("serves", ()), strict=False))
        more |= {"rung": options.rung} if getattr(options, "rung", "") else {}
        command += [word for key, value in more.items() for word in (f"--{key}", value)]
        # A variant that fails (1) or is not proven (6) is a result.
        return output([*command, "--", *row["argv"]], (0, 1, 6), options.work)

    return kept(options.dir / f"{name}.json", make)


def hyperfine(options: Any, row: Any, reports: list[Any]) -> list[Any]:
    """Returns a program's ratios by `try` and by hyperfine, if it ends and `try` has one."""
    ours = [found for report in reports if (found := ends(against(report, THP)["ratio"]))]
    if not options.beside or "serves" in row or not ours:
        return []
    started = shlex.join(row["argv"])
    if "input" in row:  # from a shell: releases before 1.16 take no file
        started = shlex.join(["sh", "-c", f"exec {started} < {shlex.quote(row['input'])}"])

    def make() -> str:
        sides, times = [f"env {started}", TUNED + started], ([], [])  # type: Any, Any
        # It runs one command after the other, and a machine drifts: ten short calls, in turns.
        for nth, order in enumerate(orders(10)):
            command = ["hyperfine", "--style", "none", "-N", "--runs", "4", "--prepare", WARM]
            # The first run of all is a discarded warm-up.
            command += ["--warmup", "0" if nth else "1", "--output", "./hyperfine.out"]
            command += ["--export-json", "out.json", *(sides[side] for side in order)]
            output(command, cwd=options.work)
            report = parsed((options.work / "out.json").read_text())
            for side, one in zip(order, report["results"], strict=True):
                times[side].extend(one["times"])
        return json.dumps({"results": [{"times": side} for side in times]})

    found = kept(options.dir / f"{row['name']}-hyperfine.json", make)["results"]
    both = [(median(one["times"]), *interval(one["times"])) for one in found]
    half = math.hypot(*((high - low) / 2 / middle for middle, low, high in both))
    value = both[1][0] / both[0][0]
    other = [value, value * (1 - half), value * (1 + half)]
    return [(row["name"], min(ours, key=lambda one: one[2] - one[1]), other)]


def end(options: Any) -> None:
    """Prints what hyperfine measured, and fails with the names of the programs that failed."""
    verdicts = []
    if options.timed:
        print(f"\n{'program':<12}{'try':<26}{'hyperfine':<26}so ({THP} beside what is set up)")
    for name, *both in options.timed:
        is_narrow = all((high - low) / value <= 0.1 for value, low, high in both)
        overlap = both[0][1] <= both[1][2] and both[1][1] <= both[0][2]
        verdict = "overlap" if overlap else "DO NOT OVERLAP"
        if is_narrow:
            verdicts.append(overlap)
        else:
            verdict = verdict.lower() + (", but" if overlap else ",") + " wider than 5 %"
        cells = (f"{value:.3f} ({low:.3f} to {high:.3f})" for value, low, high in both)
        print(f"{name:<12}{''.join(f'{cell:<26}' for cell in cells)}{verdict}")
    if options.timed:
        print(f"\n{sum(verdicts)} of {len(verdicts)} overlap, where both are as narrow as 5 %.")
    if names := ", ".join(options.failed):
        raise Failure(f"{names} failed; the results of the others are kept: call again")
