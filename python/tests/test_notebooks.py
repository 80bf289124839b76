"""The notebooks run completely, with little data."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def execute(path: Path) -> None:
    """Execute a notebook's code cells in one namespace; the value of a last expression is shown."""
    cells: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    namespace: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], "notebooks are committed without outputs"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(path), "eval"), namespace)
            assert repr(value)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs, and writes its figure."""
    monkeypatch.setenv("UDCCP_QUICK", "1")
    monkeypatch.setenv("UDCCP_STORE", str(tmp_path / "lab.sqlite"))
    monkeypatch.setenv("UDCCP_OUT", str(tmp_path))
    execute(path)
    [figure] = tmp_path.glob("*.pdf")
    assert figure.read_bytes().startswith(b"%PDF")


def test_there_are_two() -> None:
    """The study, and a user's own question."""
    assert [path.stem for path in NOTEBOOKS] == ["first-study", "own-question"]
