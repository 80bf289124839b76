#!/usr/bin/env python3
"""Takes a picture of the N-th figure of a report page with headless Chromium.

Usage: scripts/picture.py REPORT.html N OUT.png   (needs chromium)
"""

import pathlib
import re
import subprocess
import sys
import tempfile

WIDTH_PX, HEIGHT_PX, SCALE = 860, 375, 2

TIGHT = "<style>body{padding:0.6rem;max-width:none} figure,h3{margin:0 !important}</style>"


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    figures = re.findall(r"<figure.*?</figure>", page, flags=re.S)
    style = re.search(r"<style>.*?</style>", page, flags=re.S)
    index = int(sys.argv[2]) - 1
    if style is None or not 0 <= index < len(figures):
        print(f"the page has {len(figures)} figures", file=sys.stderr)
        return 1
    figure = re.sub(r"<figcaption.*?</figcaption>", "", figures[index], flags=re.S)
    with tempfile.TemporaryDirectory() as folder:
        alone = pathlib.Path(folder) / "figure.html"
        head = f"<!doctype html><meta charset=utf-8>{style[0]}{TIGHT}"
        alone.write_text(head + figure, encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--disable-background-networking", "--disable-sync",
                 f"--user-data-dir={folder}/user", f"--force-device-scale-factor={SCALE}",
                 f"--window-size={WIDTH_PX},{HEIGHT_PX}"]
        picture = pathlib.Path(sys.argv[3]).resolve()
        subprocess.run(["chromium", *flags, f"--screenshot={picture}", alone.as_uri()], check=True,
                       stderr=subprocess.DEVNULL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
