"""Inserts a section into docs/reference/performance.md: page.py SECTION < TEXT."""

import re
import sys
from pathlib import Path

PAGE = Path("docs/reference/performance.md")


def main():
    section = sys.argv[1]
    text = sys.stdin.read().strip()
    begin, end = f"<!-- begin {section} -->", f"<!-- end {section} -->"
    page = PAGE.read_text()
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    found, places = re.subn(pattern, lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL)
    if places != 1:
        sys.exit(f"{PAGE} has {places} places for the section {section}")
    PAGE.write_text(found)
    print(text)


main()
