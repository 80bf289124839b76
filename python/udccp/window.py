"""Congestion control written in Python, for the simulator."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import NamedTuple

__all__ = ["Ack", "WindowAlgorithm"]


class Ack(NamedTuple):
    """One acknowledgement, as a window algorithm sees it.

    Parameters
    ----------
    now_s
        When it arrived, in s since the start of the run.
    newly_acked
        Packets newly acknowledged that count for growth: those sent after the last reduction.
    rtt_s
        The round-trip time that it measured, in s; None if it measured none.
    srtt_s, min_rtt_s
        Smoothed and smallest round-trip time, in s; None before the first sample.
    in_flight
        Packets in flight before this acknowledgement.
    is_limited
        Whether the window was full. A window that is not used must not grow.
    """

    now_s: float
    newly_acked: int
    rtt_s: float | None
    srtt_s: float | None
    min_rtt_s: float | None
    in_flight: int
    is_limited: bool


class WindowAlgorithm:
    """A window algorithm: additive increase and halving, unless its methods are replaced.

    Set :attr:`cwnd` and :attr:`ssthresh` in the methods that you replace. The simulator rounds to
    whole packets, at least 1; NaN ends the run with an error. Pass the class to
    :func:`udccp.lab.run` (``algorithms={"first": Mine}``); each connection gets an instance. Flows
    of a TCP and of ``dccp/ccid2`` can have one. Acknowledgements, loss detection, timers and
    retransmission remain those of the protocol.

    Parameters
    ----------
    initial_window
        The initial window in packets.

    Attributes
    ----------
    cwnd
        Congestion window in packets, which may be fractional.
    ssthresh
        Slow start threshold in packets.

    Examples
    --------
    >>> class Timid(WindowAlgorithm):
    ...     def on_loss(self, now_s: float, in_flight: int) -> None:
    ...         self.cwnd = self.ssthresh = 2.0
    >>> window = Timid(10)
    >>> window.on_loss(1.0, 10)
    >>> window.cwnd
    2.0
    """

    cwnd: float
    ssthresh: float

    def __init__(self, initial_window: int) -> None:
        self.cwnd = float(initial_window)
        self.ssthresh = math.inf

    def on_ack(self, ack: Ack) -> None:
        """Increase the window: new packets were acknowledged."""
        if not ack.is_limited:
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += ack.newly_acked
        else:
            self.cwnd += ack.newly_acked / self.cwnd

    def on_loss(self, now_s: float, in_flight: int) -> None:
        """Reduce the window: a congestion event, at most one in a window of data.

        Parameters
        ----------
        now_s
            When it was detected, in s since the start of the run.
        in_flight
            Packets in flight.
        """
        self.cwnd = max(self.cwnd / 2, 1.0)
        self.ssthresh = max(self.cwnd, 2.0)

    def on_timeout(self, now_s: float, in_flight: int) -> None:
        """Start again: the retransmission timer expired. Arguments as for :meth:`on_loss`."""
        self.ssthresh = max(self.cwnd / 2, 2.0)
        self.cwnd = 1.0

    def on_set(self, now_s: float) -> None:
        """Adopt `cwnd` and `ssthresh`, which the protocol has set after an idle time."""

    def _moved(self) -> tuple[float, float]:
        # The cheapest test for NaN, which the simulator would turn into a window of one packet, and
        # for values that are not numbers.
        try:
            if self.cwnd >= -math.inf and self.ssthresh >= -math.inf:
                # A threshold that was never set becomes the largest number that the simulator has.
                return float(self.cwnd), float(min(self.ssthresh, 2.0**32 - 1))
        except (TypeError, ValueError):
            raise self._wrong(TypeError) from None
        except OverflowError:
            # An integer beyond every float.
            raise self._wrong(ValueError) from None
        raise self._wrong(ValueError)

    def _wrong(self, kind: type[Exception]) -> Exception:
        is_window = False
        with suppress(TypeError, ValueError, OverflowError):
            is_window = bool(self.cwnd >= -math.inf and float(self.cwnd) >= -math.inf)
        name, value = ("ssthresh", self.ssthresh) if is_window else ("cwnd", self.cwnd)
        try:
            shown = repr(value)
        except ValueError:
            # Python writes no integer of more than some thousand digits.
            shown = "a huge integer"
        shown = shown if len(shown) <= 100 else f"{shown[:20]}..."
        owner = type(self).__name__
        return kind(f"{owner}.{name} must be a number of packets, not {shown}")

    def _ack(
        self,
        now_s: float,
        newly_acked: int,
        rtt_s: float | None,
        srtt_s: float | None,
        min_rtt_s: float | None,
        in_flight: int,
        is_limited: bool,
    ) -> tuple[float, float]:
        self.on_ack(Ack(now_s, newly_acked, rtt_s, srtt_s, min_rtt_s, in_flight, is_limited))
        return self._moved()

    def _loss(self, now_s: float, in_flight: int) -> tuple[float, float]:
        self.on_loss(now_s, in_flight)
        return self._moved()

    def _timeout(self, now_s: float, in_flight: int) -> tuple[float, float]:
        self.on_timeout(now_s, in_flight)
        return self._moved()

    def _set(self, now_s: float, cwnd: int, ssthresh: int) -> tuple[float, float]:
        self.cwnd = float(cwnd)
        self.ssthresh = math.inf if ssthresh == 2**32 - 1 else float(ssthresh)
        self.on_set(now_s)
        return self._moved()
