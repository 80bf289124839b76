"""Writes the tables of docs/reference/sharing.md.

    udccp lab report validation --markdown > tables.md
    python3 scripts/sharing_tables.py docs/reference/sharing.md < tables.md

Each block of the page between `<!-- sharing: NAME -->` and `<!-- end -->` gets the score (if NAME
is `score`) or the table of shares whose title ends with NAME: one line per pair and round-trip
time, with a column of Linux and one of the simulation for each buffer size. Simulated shares that
do not agree are bold.
"""

import re
import sys
from pathlib import Path

# Prefix of the titles of tables of shares.
TITLE = "Share of the first flow: "
# The distance that counts as agreement, relative to the smaller share (`close` of the tables).
CLOSE = 0.1


def short(protocol):
    return re.sub(r"^(TCP|DCCP) | \(RFC 9438\)", "", protocol)


def sections(report):
    """The lines of tables, by the preceding heading."""
    found, heading = {}, None
    for line in report.splitlines():
        if line.startswith("### "):
            heading = line[4:]
        elif heading and line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|\n ").split("|")]
            found.setdefault(heading, []).append(cells)
    return {heading: [lines[0], *lines[2:]] for heading, lines in found.items()}


def numbers(text):
    """Parse mean and interval of a share: `54.2 ± 0.3`, `66 (18..100)` or `54.2 (2 runs, ...)`."""
    found = re.match(r"([\d.]+)(?: ± ([\d.]+)| \((?:\d+ runs, )?([\d.]+)\.\.([\d.]+)\))?", text)
    if not found:
        return None
    mean = float(found[1])
    if found[2]:
        return mean, (mean - float(found[2]), mean + float(found[2]))
    is_interval = found[3] and "runs" not in text
    return mean, (float(found[3]), float(found[4])) if is_interval else None


def agrees(linux, simulated):
    (measure, interval), (share, _) = linux, simulated
    is_near = abs(share - measure) <= CLOSE * min(measure, 100 - measure)
    return is_near or (interval is not None and interval[0] <= share <= interval[1])


def pair(linux, simulated):
    known = [numbers(linux), numbers(simulated)]
    is_off = all(known) and not agrees(*known)
    return [linux, f"**{simulated}**" if is_off else simulated]


def shares(lines, backend):
    head, *rows = lines
    linux, simulated = head.index(backend), head.index("simulated")
    buffers = list(dict.fromkeys(row[3] for row in rows))
    by_place = {}
    for row in rows:
        place = (short(row[0]), short(row[1]), row[2])
        by_place.setdefault(place, {})[row[3]] = pair(row[linux], row[simulated])
    words = [b.replace(" bytes", "") for b in buffers]
    columns = [name for word in words for name in (f"Linux, {word}", "simulated")]
    page = [["first", "second", "RTT", *columns]]
    for place, found in by_place.items():
        cells = [found.get(buffer, ["–", "–"]) for buffer in buffers]
        if any(cell[0] != "–" for cell in cells):
            page.append([*place, *(text for cell in cells for text in cell)])
    return table(page, 3)


def score(lines):
    _, *rows = lines
    page = [["table", "compared with", "steady cells that agree", "not steady", "runs"]]
    for title, backend, agree, _near, _inside, unsteady, runs in rows:
        page.append([title.removeprefix(TITLE), backend, f"**{agree}**", unsteady, runs])
    return table(page, 2)


def table(rows, words):
    """Format a Markdown table with this many text columns before the numeric ones."""
    rule = "|" + "---|" * words + "---:|" * (len(rows[0]) - words)
    text = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([text[0], rule, *text[1:]])


def fill(page, found):
    def block(match):
        name = match[1]
        if name == "score":
            return f"<!-- sharing: {name} -->\n{score(found['Score'])}\n<!-- end -->"
        title = next((t for t in found if t == TITLE + name), None)
        if title is None:
            sys.exit(f"the report has no table {TITLE + name}")
        backend = next(row[1] for row in found["Score"] if row[0] == title)
        return f"<!-- sharing: {name} -->\n{shares(found[title], backend)}\n<!-- end -->"

    return re.sub(r"<!-- sharing: (.*?) -->\n.*?<!-- end -->", block, page, flags=re.DOTALL)


def main():
    path = Path(sys.argv[1])
    path.write_text(fill(path.read_text(), sections(sys.stdin.read())))


main()
