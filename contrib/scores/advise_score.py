#!/usr/bin/env python3
"""How often `pagelab advise` is right, by a later run over all of the memory.

In each cell of a grid `advise` is options first. Then every strategy is measured in rounds that go
forwards and backwards in turn. The one that was named is right if it is at most 5 % slower than the
best, or in some round not slower.
"""

import itertools
import json
import math
import shutil
import time
from collections import defaultdict
from statistics import median
from typing import Any

from common import Failure, journal, output, parse, parsed

POLICIES = ("any", "keep", "base", "transparent", "locked")
CELLS = list(itertools.product(("64m", "256m", "512m", "1g", "2g"), ("1", "2"), POLICIES))
# Seven is coprime to the number of cells: the first ones of this order are of all kinds.
GRID = [CELLS[7 * index % len(CELLS)] for index in range(len(CELLS))]
AS_GOOD = 1.05
FAR = 1.6  # what is slower than this by the advice is measured in the first round only
SUITE = 'name = "judge"\nsummary = "all of the memory"\nforks = 1\nbudget = 0.001\n'
SUITE += "repetitions-min = 2\n"
KEYS = ("page", "populate", "threads")


def suite(size: str, strategies: list[Any], fifo: bool) -> str:
    """Returns a suite that gets all of the memory by each strategy, in a process of its own."""
    text = SUITE
    for one in strategies:
        keys = {"workload": "fault/throughput", "size": size, "fifo": "on" if fifo else "off"}
        keys |= {key: str(one[key]) for key in KEYS}
        text += "[[case]]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items())
    return text


def times(records: list[Any], strategies: list[Any]) -> dict[str, float]:
    """Returns the median time until all memory is there, of each strategy that is proven."""
    names = {tuple(str(one[key]) for key in KEYS): one["strategy"] for one in strategies}
    found = {}
    for record in records:
        measured, case = record["outcome"]["measured"], record["case"]
        name = names.get(tuple(case[key] or "" for key in KEYS))
        checks = measured["witness"]
        if not (name and checks and all(check["holds"] for check in checks)):
            continue
        by_touch = case["populate"] in ("touch", "mlock-onfault", "populate-read")
        counted = {"map", "advise", "populate", "touch" if by_touch else "populate"}
        sums: dict[int, float] = defaultdict(float)
        for one in measured["series"]:
            if one["name"] in counted and one["clock"] != "cpu":
                sums[one["repetition"] or 0] += sum(one["values"])
        found[name] = median(sums.values()) if sums else math.inf
    return found


def score(cell: tuple[str, str, str], options: Any) -> dict[str, Any]:
    """Asks for a cell, measures again, and compares."""
    place = options.dir / "-".join(cell)
    shutil.rmtree(place, ignore_errors=True)  # of a call that was interrupted
    words = ["--size", cell[0], "--threads", cell[1], "--policy", cell[2]]
    words += ["-o", str(place / "advice"), *(["--fifo"] if options.fifo else [])]
    accepted, begin = (0, 1, 4, 6), time.perf_counter()  # cases may be skipped or not proven
    advice = parsed(output([options.binary, "advise", "--format", "json", *words], accepted))
    seconds, named = time.perf_counter() - begin, advice["answer"]["named"]
    result = {"cell": place.name, "named": named or "nothing", "best": "", "ratio": None}
    result |= {"lowest": None, "right": False, "advise_seconds": seconds}
    if not named:  # no answer is a wrong one
        return result
    strategies = every = advice["strategies"] or []
    measured: dict[str, dict[int, float]] = defaultdict(dict)
    for nth in range(max(options.rounds, 1)):
        file, run = place / f"round-{nth}.toml", place / f"round-{nth}"
        file.write_text(suite(cell[0], strategies[:: -1 if nth % 2 else 1], options.fifo))
        output([options.binary, "run", "-q", "--suite", str(file), "-o", str(run)], accepted)
        for name, ns in times(journal(run), every).items():
            measured[name][nth] = ns
        strategies = [one for one in every if (one["ratio_to_fastest"]["value"] or FAR + 1) <= FAR]
    medians = {name: median(measured[name].values()) for name in sorted(measured)}
    if named not in medians:
        raise Failure(f"{place.name}: {named} was not measured again")
    best = min(medians, key=lambda name: medians[name])
    ratio, mine, other = medians[named] / medians[best], measured[named], measured[best]
    lowest = min([ratio, *(mine[nth] / other[nth] for nth in mine if nth in other)])
    right = ratio <= AS_GOOD or lowest <= 1
    return result | {"best": best, "ratio": ratio, "lowest": lowest, "right": right}


def line(one: dict[str, Any]) -> str:
    """Returns the line of a cell."""
    ratio, lowest = (one[key] or math.inf for key in ("ratio", "lowest"))
    text = f"{'right' if one['right'] else 'WRONG'} {one['cell']:28} named {one['named']:34}"
    text += f" best {one['best']:34} {ratio:.3f} (kindest {lowest:.3f})"
    return f"{text} {one['advise_seconds']:.1f} s"


if __name__ == "__main__":
    options = parse(
        __doc__,
        "advise-score",
        cells=(50, "cells of the grid to go through"),
        seconds=(1e5, "begin no cell after this many seconds"),
        rounds=(6, "rounds of the later measurement"),
        fifo=(False, "measure at real-time priority"),
    )
    file, begin = options.dir / "scores.jsonl", time.monotonic()
    scores = [json.loads(text) for text in file.read_text().splitlines()] if file.exists() else []
    for cell in GRID[: options.cells]:
        is_known = any(one["cell"] == "-".join(cell) for one in scores)
        if not is_known and time.monotonic() - begin < options.seconds:
            scores.append(score(cell, options))
            print(line(scores[-1]))
            with file.open("a") as to:
                to.write(json.dumps(scores[-1]) + "\n")
    right = sum(one["right"] for one in scores)
    print(f"\n{right} of {len(scores)} right; the grid has {len(GRID)} cells")
    print(*(f"wrong: {line(one)}\n" for one in scores if not one["right"]), sep="", end="")
