"""The code in the documentation pages runs unchanged."""

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
    """The programs in the pages, with their first lines."""
    found: list[tuple[str, str]] = []
    for page in ("README.md", "python/README.md", "docs/guides/python.md"):
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
            if block.startswith(RUNS):
                found.append((f"{page}: {block.splitlines()[0]}", block))
    return found


@pytest.mark.parametrize(("name", "program"), programs(), ids=lambda one: one[:60])
def test_programs_of_the_pages_run(name: str, program: str) -> None:
    """Each prints what the comments after its print calls say."""
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


def test_the_extras_that_are_named_exist() -> None:
    """Every extra is in the pages and in the errors that name it; the guide has all of them."""
    project = (ROOT / "pyproject.toml").read_text()
    table = re.search(r"optional-dependencies\]\n(.*?)\n\n", project, re.DOTALL)
    assert table
    extras = set(re.findall(r"^(\w+) =", table[1], re.MULTILINE))
    texts = [ROOT / "README.md", ROOT / "python/README.md", *(ROOT / "docs").rglob("*.md")]
    texts += [*(ROOT / "python/notebooks").glob("*.ipynb"), *(ROOT / "python/udccp").rglob("*.py")]
    named: dict[Path, set[str]] = {}
    for path in texts:
        found = re.findall(r"pip install '(?:\.|udccp)\[([\w,]+)\]'", path.read_text())
        named[path] = {extra for one in found for extra in one.split(",")}
        assert named[path] <= extras, path
    assert named[ROOT / "python/udccp/plot.py"] == {"plot"}
    guide = (ROOT / "docs/guides/python.md").read_text()
    assert extras == {extra for extra in extras if f"`{extra}`" in guide}


def test_the_page_of_the_package_has_whole_addresses() -> None:
    """PyPI shows python/README.md without the repository, in which relative links would point."""
    links = re.findall(r"\]\(([^)]*)\)", (ROOT / "python/README.md").read_text())
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_page_of_the_package_names_pages_that_exist() -> None:
    """Instead of links, it names pages of the repository."""
    pages = re.findall(r"`(docs/[^`]*)`", (ROOT / "python/README.md").read_text())
    assert pages
    assert [page for page in pages if not (ROOT / page).is_file()] == []


def test_there_are_programs() -> None:
    """At least one on each page about sockets."""
    pages = {name.split(":")[0] for name, _ in programs()}
    assert pages >= {"README.md", "python/README.md", "docs/guides/python.md"}
