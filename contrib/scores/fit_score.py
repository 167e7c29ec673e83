#!/usr/bin/env python3
"""How much of the gain `pagelab try --fit` gives, for how much of the memory.

A choice of mappings is held against the variant that has them all. A program in which that variant
has no sure gain has nothing to choose from, and is named.
"""

from typing import Any

from common import end, parse, results

GAIN, MEMORY = 0.85, 0.40  # at least, and at most, of a good choice


def line(name: str, fit: Any) -> tuple[str, bool | None]:
    """Returns the line of a program, and whether its choice is good; None without a sure gain."""
    chosen, beside = f"{fit['chosen'] or 0} of {fit['mappings'] or 0}", fit["beside"]
    text = f"{name:<12}{chosen:<11}"
    if "gain_share" not in beside:
        why = fit["why_not"] or "no rung of all mappings has a gain that is sure"
        return text + why, None
    shares = (beside["gain_share" + which] * 100 for which in ("", "_low", "_high"))
    gain = beside["rung"] + ": {:.0f} % ({:.0f} % to {:.0f} %)".format(*shares)
    share = beside.get("memory_share")
    memory = "it takes none" if share is None else f"{share * 100:.0f} %"
    good = beside["gain_share"] >= GAIN and (share or 0) <= MEMORY
    return f"{text}{gain:<36}{memory:<16}{'good' if good else 'NOT GOOD'}", good


if __name__ == "__main__":
    options, judged, dear = parse(__doc__, "fit-score", budget=60.0), [], 0
    heading = "program     chosen     of the gain of                      of its memory   so"
    for row, report in results(options, "fit", ["--fit"], heading):
        text, good = line(row["name"], report["fit"])
        print(text)
        if good is not None:
            judged.append(good)
            dear += "memory_share" in report["fit"]["beside"]
    share = f"at least {GAIN * 100:.0f} % of it for at most {MEMORY * 100:.0f} % of the memory"
    text = f"{sum(judged)} of {len(judged)} programs with something to gain: {share}"
    print(f"\n{text}; {dear} of them have memory to spare.")
    end(options)
