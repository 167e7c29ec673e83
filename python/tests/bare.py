"""The wheel in an environment that has nothing else: a run, a simulation, a trace, a sweep.

`cargo xtask python` runs it there; `python bare.py JOURNAL`.
"""

import importlib.metadata
import sys
import tempfile
from pathlib import Path

import pagelab
from pagelab import distributed


def main():
    """Uses what needs no other package, and asks for what does."""
    installed = {each.metadata["Name"] for each in importlib.metadata.distributions()}
    assert installed <= {"pagelab", "pip", "setuptools"}, installed
    run = pagelab.load(sys.argv[1])
    assert len(run.numbers()) > 100 and run.numbers().__arrow_c_stream__() is not None
    with tempfile.TemporaryDirectory() as folder:
        fixed = {"policy": "pghot", "size": "16m", "accesses": "100m"}
        axes = {"fast": ["10%", "50%"], "threshold": [1, 2]}
        swept = distributed.sweep(axes, Path(folder) / "sweep", fixed=fixed, on=2)
        assert len(swept.rows) == 4
        try:
            distributed.sweep(axes, Path(folder) / "other", fixed=fixed, on="tcp://127.0.0.1:1")
        except ImportError as error:
            assert "pip install" in str(error)
        else:
            raise AssertionError("a cluster without Dask")
    assert pagelab.trace_stats("fib", ops=1000)["ops"] == 1000
    print(f"pagelab {pagelab.__version__} works with nothing beside it")


if __name__ == "__main__":
    main()
