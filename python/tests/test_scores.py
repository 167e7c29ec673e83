"""The scores of contrib/scores: their verdicts and tables, of reports that are written here."""

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

pytest.importorskip("tomllib", reason="skipped: no tomllib; to run it: use Python 3.11 or newer")
SCORES = Path(__file__).parents[2] / "contrib" / "scores"
sys.path.insert(0, str(SCORES))

import advise_score  # noqa: E402
import common  # noqa: E402
import explain_score  # noqa: E402
import fit_score  # noqa: E402
import segment_score  # noqa: E402
import try_score  # noqa: E402


def of(value):
    """Returns a value as the scores read it: from JSON."""
    return common.parsed(json.dumps(value))


def quantity(value, give):
    return {"value": value, "low": value - give, "high": value + give}


def test_the_programs_of_a_score_are_of_all_kinds_and_two_gain_nothing():
    known = {"name", "kind", "scores", "needs", "fix", "command"}
    known |= {"check", "prepare", "input", "serves", "own", "planted"}
    assert all(row["fix"] and set(row) <= known for row in common.PROGRAMS)
    names = [row["name"] for row in common.PROGRAMS]
    assert len(set(names)) == len(names)
    for score, count, interpreters, idle in (
        ("explain", 12, 2, 2),
        ("try", 12, 0, 2),
        ("fit", 16, 2, 2),
        ("segment", 5, 1, 0),
    ):
        kinds = [row["kind"] for row in common.PROGRAMS if score in row["scores"]]
        found = (len(kinds), kinds.count("interpreter"), kinds.count("gains nothing"))
        assert found == (count, interpreters, idle), score


def test_an_interval_takes_six_values_and_leaves_few_out():
    values = [float(value) for value in range(1, 21)]
    assert common.interval(values[:5]) == []
    assert common.interval(values[:6]) == [1.0, 6.0]
    # The table of order statistics: of 20 the 6th and the 15th, of 40 the 14th and the 27th.
    assert common.interval(values) == [6.0, 15.0]
    assert common.interval([float(value) for value in range(1, 41)]) == [14.0, 27.0]


def test_what_is_missing_or_null_is_empty():
    report = of({"a": None, "b": {"c": 0.0, "d": None}})
    assert report["a"]["x"] == {} and "a" not in report
    assert report["b"] == {"c": 0.0}
    assert common.ends(of(quantity(0.0, 0.0))) == [0.0, 0.0, 0.0]
    assert common.ends(of({"value": 1.0, "low": None})) == []


def tried(best, is_open, *variants):
    rungs = [
        {
            "rung": name,
            "beside_what_is_set_up": {"ratio": quantity(ratio, 0.01), "verdict": verdict},
        }
        for name, verdict, ratio in variants
    ]
    answers = [{"rung": best}] if best else []
    return of({"tried": {"answers": answers, "open": is_open, "rungs": rungs}})


def test_what_is_repeated_says_the_same_twice_and_decides():
    faster = tried("a", [], ("a", "FASTER", 0.8), ("b", "FASTER", 0.81))
    by_b = tried("b", [], ("a", "FASTER", 0.8), ("b", "FASTER", 0.79))
    not_a = tried("b", [], ("a", "SAME", 1.0), ("b", "FASTER", 0.9))
    screened = tried("b", [], ("b", "FASTER", 0.9))
    leave = tried(None, [], ("a", "SLOWER", 1.2))
    opened = tried(None, ["a"], ("a", "INCONCLUSIVE", 0.95))
    beside = tried(None, ["plain"], ("a", "SLOWER", 1.2))

    def line(one, other, **row):
        return try_score.line({"name": "x", **row}, one, other)

    for pair in ((faster, faster), (faster, by_b), (faster, screened), (leave, beside)):
        assert line(*pair)[0]
    for pair in ((faster, not_a), (faster, leave), (opened, opened)):
        assert not line(*pair)[0]
    assert line(faster, leave)[1] == f"x           {'a -20.0 %':<26}{'leave it':<26}NOT REPEATED"
    for report, planted, found in (
        (faster, "gain", "found"),
        (leave, "loss", "found"),
        (leave, "gain", "NOT FOUND"),
        (faster, "loss", "NOT FOUND"),
        (opened, "loss", "NOT FOUND"),
    ):
        assert line(report, report, planted=planted)[1].endswith(f", planted and {found}")


def test_a_choice_is_good_that_gives_most_of_the_gain_for_little_of_the_memory():
    def line(share, memory):
        beside = {"rung": "thp-always", "gain_share": share, "memory_share": memory}
        if share is not None:
            beside |= {"gain_share_low": share - 0.1, "gain_share_high": share + 0.1}
        fit = {"mappings": 9, "chosen": 2, "beside": beside}
        return fit_score.line("x", of(fit))

    text, good = line(0.9, 0.3)
    assert good
    assert text == (
        "x           2 of 9     thp-always: 90 % (80 % to 100 %)    30 %            good"
    )
    assert [line(0.9, None)[1], line(0.9, 0.5)[1], line(0.8, 0.1)[1]] == [True, False, False]
    assert line(None, 0.1)[1] is None
    assert fit_score.line("x", of({}))[1] is None


def prediction(rung, predicted, came, agreement):
    known = came is not None
    return {
        "rung": rung,
        "at_most": False,
        "predicted": quantity(predicted, 1e6),
        "came": quantity(came, 1e6) if known else None,
        "nothing_came": None if known else "not tried",
        "agreement": agreement,
        "off_by_share_of_stall": (came - predicted) / 100e6 if known else None,
    }


def test_what_is_open_or_untried_is_not_right():
    predictions = [
        prediction("thp-always", 80e6, 70e6, "near"),
        prediction("malloc-thp", 80e6, 20e6, "open"),
        prediction("mthp-64k", 40e6, None, None),
    ]
    cpu = {"series": "cpu", "time": "cpu", "statistic": "p50", "value": 1e9}
    cases = [{"case": {"rung": "as-set-up"}}, {"case": {"rung": "plain"}, "numbers": [cpu]}]
    report = of({"cases": cases, "predictions": predictions})
    rows = [explain_score.cells("sort", one) for one in report["predictions"]]
    assert explain_score.aligned([explain_score.HEADING, *rows]) == (
        "program  rung        predicted, ms  came, ms       off by  so\n"
        "sort     thp-always  80 (79 to 81)  70 (69 to 71)  -10 %   within 15 %\n"
        "sort     malloc-thp  80 (79 to 81)  20 (19 to 21)  -60 %   open\n"
        "sort     mthp-64k    40 (39 to 41)  not tried\n"
    )
    assert explain_score.total([report]) == (
        "1 of 2 right (50 %): 0 inside their interval, 1 within 15 % of the time in faults.\n"
        "0 off, 1 open, 0 of the wrong sign.\n"
        "Of the 1 that surely gained or lost 3 % of their CPU time, the error is 0.14 of that of "
        "predicting nothing.\n"
    )
    assert explain_score.total([of({})]) == (
        "No prediction has anything beside it.\n"
        "None of them surely gained or lost 3 % of its CPU time.\n"
    )


def test_a_bound_and_a_point_are_shown_as_such():
    one = of(prediction("a", 2e6, 0.0, "opposite") | {"at_most": True})
    expected = ["at most 3.0", "0.0 (-1.0 to 1.0)", "-2 %", "WRONG SIGN"]
    assert explain_score.cells("x", one)[2:] == expected
    assert explain_score.span([0.0, 0.0, 0.0]) == "0.0"
    assert explain_score.span([-0.7e6, -12e6, 9.96e6]) == "-0.7 (-12 to 10)"


def test_arms_are_compared_round_by_round():
    def record(rung, **values):
        series = [
            {"name": name, "process": nth, "values": [value]}
            for name, all_of_it in values.items()
            for nth, value in enumerate(all_of_it)
        ]
        return of({"case": {"rung": rung}, "outcome": {"measured": {"series": series}}})

    rounds = range(1, 9)
    records = [
        record("plain", peak=[100 * n for n in rounds], elapsed=[10 * n for n in rounds]),
        record("segment", peak=[120 * n for n in rounds], elapsed=[8 * n for n in rounds]),
        # In the last two rounds no page came.
        record("malloc-thp", elapsed=[(8 if n < 7 else 16) * n for n in rounds]),
    ]

    def line(came):
        tunable = {"rung": "malloc-thp", "rounds": 8, "came": came}
        report = {"tried": {"rungs": [{"rung": "segment"}, tunable]}}
        return segment_score.line(records, of(report), "elapsed")

    alone = segment_score.line(records[:2], of({}), "elapsed")
    assert alone == "1.20      0.800 (0.800-0.800) FASTER     -"
    assert line([]).endswith(" as to plain: no huge page came in 8 rounds")
    assert line([0, 1, 2, 3, 4, 5]).endswith(" 1.000 (1.000-1.000) SAME, came in 6 of 8")
    assert line([6]).endswith(" 0.500 (too few), came in 1 of 8")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.013, 1.029, "SAME"),
        (0.98, 1.01, "SAME"),
        (1.013, 1.036, "SLOWER"),
        (0.95, 0.99, "FASTER"),
        (0.96, 1.01, "INCONCLUSIVE"),
    ],
)
def test_a_verdict_is_that_of_every_comparison(low, high, verdict):
    ratios = [low + (high - low) * nth / 5 for nth in range(6)]
    assert segment_score.comparison(ratios).split()[-1] == verdict


def test_a_figure_is_read_from_the_report_and_one_that_is_missing_says_why():
    def number(arm, series, statistic, value, give=0.0):
        keys = {"arm": arm, "series": series, "statistic": statistic, "time": "cpu"}
        return keys | quantity(value, give)

    numbers = [
        number("segment-2m", "process", "of_plain", 0.05, 0.01),
        number("segment-2m", "zero", "p50", 12e6),
        number("plain", "process", "p50", 1500.0),
    ]
    left_out = [{"arm": "segment-1g", "need": "a page of 1g", "cure": "get one"}]
    case = of({"standing": "valid", "numbers": numbers, "left_out": left_out})
    figures = segment_score.FIGURES.values()
    first, again, _, giant, _ = (segment_score.figure(case, *figure) for figure in figures)
    assert again == "0.050 (0.040-0.060)  0.06   0.035"
    assert giant.startswith("left out: a page of 1g")
    assert first.startswith("none (valid)")
    assert segment_score.cleared(case) == "0.031"


def test_the_grid_holds_every_cell_once_and_begins_with_all_kinds():
    assert len(set(advise_score.GRID)) == len(advise_score.GRID) == 50
    sizes, threads, policies = (set(column) for column in zip(*advise_score.GRID[:10], strict=True))
    assert (len(sizes), len(threads), len(policies)) == (5, 2, 5)


def test_a_strategy_is_timed_until_its_memory_is_there():
    strategies = [
        {"strategy": "touch it", "page": "4k", "populate": "touch", "threads": 1},
        {"strategy": "ask", "page": "4k", "populate": "madvise", "threads": 2},
    ]
    for text in ('page = "4k"', 'populate = "madvise"', 'threads = "2"', 'fifo = "on"'):
        assert text in advise_score.suite("1g", of(strategies), True)

    def record(populate, threads, holds=True):
        series = [
            {"name": name, "repetition": repetition, "values": values, "clock": clock}
            for name, repetition, values, clock in (
                ("map", 0, [1.0], None),
                ("touch", 0, [10.0, 10.0], None),
                ("touch", 0, [1000.0], "cpu"),
                ("populate", 1, [3.0], None),
                ("unmap", 1, [500.0], None),
            )
        ]
        measured = {"series": series, "witness": [{"holds": holds}]}
        case = {"page": "4k", "populate": populate, "threads": threads}
        return of({"case": case, "outcome": {"measured": measured}})

    records = [record("touch", "1"), record("madvise", "2"), record("touch", "2")]
    assert advise_score.times(records, of(strategies)) == {"touch it": 12.0, "ask": 2.0}
    assert advise_score.times([record("touch", "1", holds=False)], of(strategies)) == {}


def test_two_tools_overlap_or_do_not_and_a_wide_one_says_nothing(tmp_path, capsys):
    ours = tried(None, [], ("malloc-thp", "FASTER", 0.8))
    options = Namespace(beside=True, dir=tmp_path, work=tmp_path, failed=[], timed=[])

    def hyperfine(tuned, spread=1 / 200):
        times = [1 + (nth % 5 - 2) * spread for nth in range(40)]
        sides = [{"times": times}, {"times": [time * tuned for time in times]}]
        (tmp_path / "x-hyperfine.json").write_text(json.dumps({"results": sides}))
        return common.hyperfine(options, {"name": "x", "argv": ["x"]}, [ours, ours])

    options.timed = [*hyperfine(0.8), *hyperfine(0.9), *hyperfine(0.9, spread=1 / 10)]
    common.end(options)
    heading, same, other, wide, _, total = capsys.readouterr().out.strip().splitlines()
    columns = "{:<12}{:<26}{:<26}{}"
    so = "so (malloc-thp beside what is set up)"
    assert heading == columns.format("program", "try", "hyperfine", so)
    both = ("0.800 (0.790 to 0.810)", "0.800 (0.794 to 0.806)")
    assert same == columns.format("x", *both, "overlap")
    assert other.endswith("DO NOT OVERLAP")
    assert wide.endswith("overlap, but wider than 5 %")
    assert total == "1 of 2 overlap, where both are as narrow as 5 %."
    assert common.hyperfine(options, {"name": "x", "argv": ["x"]}, [of({})]) == []
    assert common.hyperfine(options, {"name": "x", "argv": ["x"], "serves": []}, [ours]) == []


def score(name, *words):
    """Returns exit code, output and errors of a score."""
    command = [sys.executable, SCORES / f"{name}_score.py", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_what_came_of_a_program_is_kept_and_a_failure_is_named(tmp_path):
    program = tmp_path / "pagelab"
    fit = {"chosen": 1, "mappings": 4, "beside": {}}
    program.write_text(f"#!/bin/sh\necho '{json.dumps({'fit': fit})}'\n")
    program.chmod(0o755)
    flags = ("--dir", str(tmp_path / "dir"), "--binary", str(program), "--only", "git")
    rc, text, errors = score("fit", *flags)
    assert (rc, errors) == (0, "git (file-heavy)\n")
    why = "no rung of all mappings has a gain that is sure"
    assert f"\ngit         1 of 4     {why}\n\n0 of 0 programs" in text
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    assert score("fit", *flags) == (0, text, "")
    (tmp_path / "dir" / "git.json").unlink()
    rc, _, errors = score("fit", *flags)
    assert rc == 1
    assert " ended with 3: broken\n" in errors
    assert errors.endswith("git failed; the results of the others are kept: call again\n")


@pytest.mark.parametrize("name", ["try", "explain", "fit", "segment", "advise"])
def test_each_score_has_help_and_says_how_the_binary_is_built(name, tmp_path):
    rc, text, _ = score(name, "--help")
    assert rc == 0
    assert "--binary" in text
    rc, _, errors = score(name, "--dir", str(tmp_path), "--binary", str(tmp_path / "none"))
    assert rc == 2
    assert "cargo build --release" in errors


def test_a_program_that_no_score_has_is_refused_with_those_it_has(tmp_path):
    rc, _, errors = score("segment", "--dir", str(tmp_path), "--binary", "true", "--only", "x")
    assert rc == 1
    assert "python, gcc, sqlite, java, redis" in errors
