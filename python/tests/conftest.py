"""What the tests share: a run, a trace, a cluster, the binary."""

import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pagelab

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
# Workers import the functions of the tests.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
sys.path.insert(0, str(HERE))

import jobs  # noqa: E402


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


@pytest.fixture
def plan(request, binary, tmp_path):
    """Makes a plan of the suite of the test's file, in so many shards."""

    def make(shards):
        (tmp_path / "mine.toml").write_text(request.module.SUITE)
        words = ["fleet", "plan", tmp_path / "mine.toml", "--shards", str(shards)]
        subprocess.run([binary, *words, "-o", tmp_path / "plan"], check=True, capture_output=True)
        return tmp_path / "plan"

    return make


@pytest.fixture
def merged(binary):
    """Merges results into a run, which it loads."""

    def merge(results, into):
        command = [binary, "fleet", "merge", results, "-o", into]
        came = subprocess.run(command, capture_output=True, text=True)
        assert came.returncode == 0, came.stderr
        return pagelab.load(into)

    return merge


@pytest.fixture
def stand_in(tmp_path):
    """A program of Python in place of the binary."""

    def make(text):
        path = tmp_path / "pagelab"
        # Written by another process: what a thread of this one starts meanwhile would hold the
        # file open for writing, and nobody could execute it (ETXTBSY).
        write = ["sh", "-c", 'cat > "$0" && chmod 755 "$0"', path]
        subprocess.run(write, input=f"#!{sys.executable}\n{text}", text=True, check=True)
        return str(path)

    return make


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
    cluster.wait_for_workers(2, timeout=jobs.DEADLINE)
    return cluster


@pytest.fixture
def mortal():
    """A cluster in a process of its own, which may be killed: the process, a client, its address.

    The cluster ends when nobody holds its input open any more.
    """
    distributed = pytest.importorskip("distributed")
    script = (
        "import sys\nfrom distributed import LocalCluster\n"
        "cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False,"
        " protocol='tcp://', host='127.0.0.1', dashboard_address=':0')\n"
        "print(cluster.scheduler_address, flush=True)\nsys.stdin.read()\n"
    )
    command, pipe = [sys.executable, "-c", script], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as own:
        address = own.stdout.readline().strip()
        with distributed.Client(address, timeout=jobs.DEADLINE, set_as_default=False) as client:
            # How long it looks for a scheduler that is gone.
            client._timeout = 2
            yield own, client, address
        own.kill()


@pytest.fixture(scope="session")
def cluster():
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    # A local cluster gives up workers that are not back in 15 s: on a busy machine all of them.
    patient = {"distributed.deploy.lost-worker-timeout": "10 minutes"}
    with (
        dask.config.set(patient),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as own,
        distributed.Client(own, timeout=jobs.DEADLINE) as client,
    ):
        yield client
