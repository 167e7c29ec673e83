"""The notebook runs, from its first cell to its last."""

from pathlib import Path

import jobs
import pytest

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "tour.ipynb"


def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    path = {"metadata": {"path": NOTEBOOK.parent}}
    limits = {"timeout": jobs.DEADLINE, "startup_timeout": jobs.DEADLINE}
    nbclient.NotebookClient(notebook, **limits, resources=path).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 3


def test_the_notebook_is_kept_without_what_it_printed():
    import json

    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(not cell.get("outputs") for cell in cells)
