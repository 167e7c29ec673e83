"""What one process does: runs into data frames, simulation, statistics, replay."""

import importlib.metadata
import inspect
import os
import subprocess
import sys
import threading
import time

import pytest

import pagelab


def test_the_version_is_that_of_the_wheel():
    assert pagelab.__version__ == importlib.metadata.version("pagelab")


def test_a_run_is_a_data_frame_of_pandas(run):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame.from_arrow(pagelab.load(run))
    latency = frame[(frame.workload == "fault/latency") & (frame.statistic == "p50")]
    assert set(latency.unit) == {"ns"} and (latency.low <= latency.high).all()
    assert {"kind", "page", "arm", "standing", "value"} <= set(frame.columns)


def test_a_run_is_a_data_frame_of_polars_and_of_arrow(run):
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    one = pagelab.load(run)
    assert polars.DataFrame(one).shape == arrow.table(one).shape
    assert polars.DataFrame(one.counters())["value"].dtype == polars.UInt64


def test_a_run_is_a_table_of_duckdb(run):
    duckdb = pytest.importorskip("duckdb")
    one = pagelab.load(run)
    found = duckdb.sql("select count(*) from one where standing = 'valid'").fetchall()
    assert len(one) and found[0][0] > 100


def test_numbers_are_those_of_the_csv(run, binary):
    polars = pytest.importorskip("polars")
    text = subprocess.run(
        [binary, "report", run, "--format", "csv"], capture_output=True, check=True
    ).stdout
    ours = polars.DataFrame(pagelab.load(run))
    theirs = polars.read_csv(text)
    assert ours.columns[:1] + ours.columns[2:] == theirs.columns
    assert ours["value"].to_list() == theirs["value"].cast(polars.Float64).to_list()


def test_observations_make_a_distribution(run):
    polars = pytest.importorskip("polars")
    seen = polars.DataFrame(pagelab.load(run).observations())
    faults = seen.filter((polars.col("series") == "fault") & (polars.col("unit") == "ns"))
    assert faults["count"].sum() > 1000 and faults["value"].max() > 0


def test_records_are_as_they_are_written(run):
    records = pagelab.load(run).records()
    assert len(records) == 18 and records[0]["schema"] == "pagelab.record/1"


def test_a_journal_that_breaks_off_is_read_up_to_there(run, tmp_path):
    whole = (run / "journal.jsonl").read_bytes()
    (tmp_path / "journal.jsonl").write_bytes(whole[:-100])
    broken = pagelab.load(tmp_path)
    assert broken.damage.startswith("line 19") and len(broken) == 17


def test_what_is_no_run_is_told(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        pagelab.load(tmp_path / "nowhere")
    (tmp_path / "notes").write_text("hello\n")
    with pytest.raises(ValueError, match="notes"):
        pagelab.load(tmp_path / "notes")


def test_simulations_are_the_same_each_time():
    asked = {"policy": ["pghot", "none"], "size": "16m", "fast": "50%", "accesses": "100m"}
    first = pagelab.simulate(**asked)
    assert [row["arm"] for row in first] == ["pghot", "none"]
    assert first == pagelab.simulate(**asked)
    assert first[0]["pgpromote_success"] > 0 == first[1]["pgpromote_success"]


def test_a_simulation_is_that_of_the_binary(binary, tmp_path):
    words = ["--policy", "pghot", "--size", "16m", "--fast", "50%", "--accesses", "100m"]
    command = [binary, "run", "tier/simulation", *words, "-o", tmp_path / "run", "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    ours = pagelab.simulate(policy="pghot", size="16m", fast="50%", accesses="100m")[0]
    for record in pagelab.load(tmp_path / "run").records():
        counters = record["outcome"]["measured"]["counters"]
        assert counters["digest/pghot"] == ours["digest"]


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"policy": "lru"}, ValueError, "no policy is called `lru`"),
        ({"fast": "0%"}, ValueError, "share above 0"),
        ({"colour": 3}, ValueError, "no parameter `colour`"),
        ({"size": ["16m", "32m"]}, ValueError, "one is asked for"),
        ({"size": object()}, TypeError, "not object"),
        ({"scenario": "/nowhere.toml"}, ValueError, "no preset and no file"),
        ({"trace": "/nowhere"}, RuntimeError, "/nowhere"),
    ],
)
def test_a_mistake_is_told_with_what_is_accepted(asked, error, says):
    with pytest.raises(error, match=says):
        pagelab.simulate(**asked)


def test_statistics_are_those_of_a_trace(trace):
    stats = pagelab.trace_stats(trace, stack="exact")
    assert stats["ops"] == 60_000 == stats["reads"] + stats["writes"]
    assert stats["stack"]["curve"][-1]["misses"] == stats["reuse"]["cold"]
    assert len(pagelab.trace_stats(trace, top_k=3)["top_pages"]) == 3


def test_what_is_no_trace_is_told(tmp_path, trace):
    (tmp_path / "notes").write_text("hello, world\n")
    with pytest.raises(ValueError, match="is no trace"):
        pagelab.trace_stats(tmp_path / "notes")
    (tmp_path / "cut").write_bytes(trace.read_bytes() + b"\x09" * 20)
    with pytest.raises((ValueError, RuntimeError), match="operation 9 is neither"):
        pagelab.trace_stats(tmp_path / "cut")


def test_a_replay_is_a_run(trace):
    run = pagelab.replay(trace, budget=0.1, backend=["noop", "tlb"])
    (record,) = run.records()
    assert record["workload"] == "emu/replay" and "Trace replay" in str(run)
    assert {series["arm"] for series in record["outcome"]["measured"]["series"]} == {"noop", "tlb"}


def test_the_interpreter_is_let_go():
    # A thread counts while another one simulates. It counts only where that one has let go: nobody
    # is made to, however long it takes. If it gets no processor for one simulation, it does for
    # another.
    counted, is_over = [0], threading.Event()

    def count():
        while not is_over.is_set():
            counted[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(1000):
            before = counted[0]
            pagelab._native.simulate_all([{"size": "64m", "fast": "50%", "accesses": "1g"}] * 20)
            if counted[0] > before:
                break
        assert counted[0] > before
    finally:
        is_over.set()
        sys.setswitchinterval(interval)
        thread.join()


def test_everything_that_is_exported_is_documented():
    for name in pagelab.__all__:
        if name != "__version__":
            assert len(inspect.getdoc(getattr(pagelab, name))) > 50, name


def test_it_needs_no_other_package(tmp_path, run):
    # As in an environment without any: whatever is imported beyond Python's own is an error.
    script = (
        "import sys, pagelab, pagelab.distributed as d\n"
        f"assert len(pagelab.load({str(run)!r}).numbers()) > 100\n"
        "names = {'numpy', 'pandas', 'pyarrow', 'polars', 'duckdb', 'dask', 'distributed'}\n"
        "assert not names & set(sys.modules), names & set(sys.modules)\n"
        "sys.modules['distributed'] = None\n"
        "try:\n"
        "    d.sweep({'fast': ['5%']}, 'here', on='tcp://127.0.0.1:1')\n"
        "except ImportError as error:\n"
        "    assert 'pip install' in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, env=environment)
