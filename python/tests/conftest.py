"""What the tests share: a run, a trace, a cluster, the binary."""

import lzma
import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
# Workers import the functions of the tests.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
sys.path.insert(0, str(HERE))


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The directory of a run that lies in the repository."""
    folder = tmp_path_factory.mktemp("runs") / "pages"
    folder.mkdir()
    packed = ROOT / "records" / "pages.jsonl.xz"
    (folder / "journal.jsonl").write_bytes(lzma.decompress(packed.read_bytes()))
    return folder


@pytest.fixture(scope="session")
def binary():
    """The binary, which `cargo xtask python` builds before."""
    named = os.environ.get("PAGELAB", str(ROOT / "target" / "debug" / "pagelab"))
    if shutil.which(named) is None:
        pytest.skip(f"{named} is not there; to run it: cargo build -p pagelab")
    return named


@pytest.fixture(scope="session")
def trace(tmp_path_factory):
    """A raw trace of stores and loads that comes back to its pages."""
    path = tmp_path_factory.mktemp("traces") / "trace.bin"
    state, records = 1, []
    for number in range(60_000):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        page = (state >> 33) % (1 + number // 100)
        address = (0x10_0000 + page * 4096 + (state >> 20) % 4096).to_bytes(8, "little")
        if state >> 63:
            records.append(b"\x01\x04" + address + number.to_bytes(4, "little"))
        else:
            records.append(b"\x02\x08" + address)
    path.write_bytes(b"".join(records))
    return path


@pytest.fixture
def client(cluster):
    """A Dask cluster of two workers of one thread: both, also after a test that killed one."""
    cluster.wait_for_workers(2, timeout=60)
    return cluster


@pytest.fixture(scope="session")
def cluster():
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    client = distributed.Client(cluster)
    yield client
    client.close()
    cluster.close()
