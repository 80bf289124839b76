"""Draws the last 100 samples of rates while they come: as text, or in a window."""

import importlib
import os
import sys
from collections import deque
from typing import Any

#: How many samples a graph shows.
SHOWN = 100

BARS = " ▁▂▃▄▅▆▇█"


class Graph:
    """One line for each name, in Mbit/s, a sample for each second.

    Parameters
    ----------
    names
        What is drawn, for example protocols.
    save
        A picture to write at the end; None writes none.
    as_text
        Draw text although there is a display.
    """

    def __init__(self, names: list[str], save: str | None, as_text: bool) -> None:
        self.samples = {name: deque([0.0], SHOWN) for name in names}
        self.save = save
        has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        self.in_window = bool(has_display) and not as_text
        if self.in_window:
            self.draw_axes(pause_s=0.01)

    def add(self, mbps: dict[str, float]) -> None:
        """Append a sample for each name, and draw."""
        for name, rate in mbps.items():
            self.samples[name].append(rate)
        if self.in_window:
            self.draw_axes(pause_s=0.01)
        else:
            self.draw_text()

    def draw_text(self) -> None:
        """Print one line of bars per name, over the previous ones on a terminal."""
        highest = max(1.0, *(rate for line in self.samples.values() for rate in line))
        for name, line in self.samples.items():
            levels = (round(rate / highest * (len(BARS) - 1)) for rate in line)
            bars = "".join(BARS[level] for level in levels)
            print(f"{name:>5} {line[-1]:8.2f} Mbit/s |{bars:<{SHOWN}}|")
        if sys.stdout.isatty():
            # Move the cursor up, so that the next sample replaces this one.
            print(f"\x1b[{len(self.samples)}A", end="", flush=True)

    def draw_axes(self, pause_s: float) -> Any:  # noqa: ANN401
        """The same with matplotlib."""
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
        figure = pyplot.figure("udccp")
        figure.clear()
        axes = figure.add_subplot(
            xlabel="time in s", ylabel="rate in Mbit/s", title="the last 100 samples"
        )
        for name, line in self.samples.items():
            axes.plot(range(len(line)), list(line), label=name)
        axes.legend(loc="upper left")
        if pause_s:
            pyplot.pause(pause_s)
        return figure

    def close(self) -> None:
        """Move below the graph in the terminal, and write the picture."""
        if not self.in_window and sys.stdout.isatty():
            print("\n" * len(self.samples))
        if self.save:
            self.draw_axes(pause_s=0).savefig(self.save, dpi=120)
            print(f"wrote {self.save}")
