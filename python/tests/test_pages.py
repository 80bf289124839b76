"""The code of the pages runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Blocks that are programs of their own, by a comment in their first line.
RUNS = "# runs"


def programs() -> list[tuple[str, str]]:
    """The programs of the pages: their first lines and texts."""
    found: list[tuple[str, str]] = []
    for page in ("README.md", "python/README.md", "docs/guides/python.md"):
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
            if block.startswith(RUNS):
                found.append((f"{page}: {block.splitlines()[0]}", block))
    return found


@pytest.mark.parametrize(("name", "program"), programs(), ids=lambda one: one[:60])
def test_programs_of_the_pages_run(name: str, program: str) -> None:
    """Each prints what the comments behind its prints say."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT / "python",
    )
    assert done.returncode == 0, f"{name}\n{done.stderr}"
    expected = re.findall(r"print\(.*\)  # (.*)", program)
    assert expected
    assert done.stdout.splitlines() == expected


def test_there_are_programs() -> None:
    """One at least on each page that has sockets."""
    pages = {name.split(":")[0] for name, _ in programs()}
    assert pages >= {"README.md", "python/README.md", "docs/guides/python.md"}
