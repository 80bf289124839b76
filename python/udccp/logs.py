"""Reads logs of other tools, for :mod:`udccp.metrics`.

``iperf3`` reads the JSON of ``iperf3 -J``, ``iperf2`` the text of ``iperf -i 1``, ``pcap`` a
capture, ``ss`` repeated output of ``ss -tin``. Each returns flows with one value per interval:
rates in Mbit/s (10^6 bit/s), times in s since the start.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from udccp import _native
from udccp.errors import LogError
from udccp.lab.frames import Frame, Library, make_frame

__all__ = ["FlowLog", "LogError", "frame", "iperf2", "iperf3", "pcap", "ss"]


@dataclass(frozen=True)
class FlowLog:
    """One flow of a log.

    All lists have the shape ``(intervals,)``, or are empty if the log does not have the values.

    Parameters
    ----------
    name
        Its name in the log.
    protocol
        ``tcp``, ``udp``, ``dccp``, or the number of the IP protocol.
    t_s
        End of each interval in s, or time of each sample.
    rate_mbps
        Rate in the interval in Mbit/s: of payload for ``iperf``, of IP bytes for ``pcap``, of
        acknowledged bytes for ``ss``.
    rtt_ms
        Smoothed round-trip time in ms.
    cwnd_packets
        Congestion window in packets.
    retransmits
        Packets retransmitted in the interval.
    lost, packets
        Datagrams lost in the interval, and all datagrams.
    jitter_ms
        Jitter as in the log, in ms.
    begin_s
        Begin of the first interval, in s. For ``ss``, the time at which it first saw the
        connection, else 0.
    """

    name: str
    protocol: str
    t_s: list[float]
    rate_mbps: list[float]
    rtt_ms: list[float] = field(default_factory=list[float])
    cwnd_packets: list[float] = field(default_factory=list[float])
    retransmits: list[int] = field(default_factory=list[int])
    lost: list[int] = field(default_factory=list[int])
    packets: list[int] = field(default_factory=list[int])
    jitter_ms: list[float] = field(default_factory=list[float])
    begin_s: float = 0.0

    @property
    def mean_mbps(self) -> float:
        """Mean rate in Mbit/s, from ``begin_s`` to the end of the last interval."""
        begun, bits = self.begin_s, 0.0
        for end, rate in zip(self.t_s, self.rate_mbps, strict=True):
            bits += rate * (end - begun)
            begun = end
        span = begun - self.begin_s
        return bits / span if span > 0 else 0.0


def _text(path: str | PathLike[str]) -> str:
    try:
        return Path(fspath(path)).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise LogError(f"cannot read {fspath(path)}: {error.strerror}") from error


def iperf3(path: str | PathLike[str]) -> list[FlowLog]:
    """Read the JSON of ``iperf3 -J`` or ``--json-stream`` (TCP or UDP, any number of streams).

    The log of a server may have several tests, of which the flows are returned one after the other.
    Intervals that ``iperf3 -O`` leaves out of its own results are left out.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    LogError
        It is not a result of iperf3, or iperf3 failed; the text says which.
    """
    try:
        parts = _iperf3_tests(_text(path))
        # A server that is stopped ends its log with an error, and no test.
        tests = [part for part in parts if part.get("intervals")] or parts
        failed = [str(part["error"]) for part in tests if "error" in part]
        if failed:
            raise LogError(f"{fspath(path)}: iperf3 says: {failed[0]}")
        return [flow for test in tests for flow in _iperf3_flows(test)]
    except LogError:
        raise
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise LogError(f"{fspath(path)} is not JSON of iperf3: {error!r}") from error


def _iperf3_tests(text: str) -> list[dict[str, Any]]:
    """Split a log into the results of its tests; those of ``--json-stream`` come in events."""
    decoder, tests, rest = json.JSONDecoder(), list[dict[str, Any]](), text.strip()
    while rest or not tests:
        part, end = decoder.raw_decode(rest)
        rest = rest[end:].lstrip()
        match part:
            case {"event": "start", "data": start}:
                tests.append({"start": start, "intervals": []})
            case {"event": "interval", "data": interval}:
                tests[-1]["intervals"].append(interval)
            case {"event": "end", "data": end_of_test}:
                tests[-1]["end"] = end_of_test
            case {"event": "error", "data": error}:
                if not tests or "end" in tests[-1]:
                    tests.append({})
                tests[-1]["error"] = error
            case {"event": _}:
                pass
            case _:
                tests.append(part)
    return tests


def _iperf3_flows(test: dict[str, Any]) -> list[FlowLog]:
    begin = test["start"]
    protocol = str(begin["test_start"]["protocol"]).lower()
    mss = float(begin.get("tcp_mss_default") or begin.get("tcp_mss") or 0)
    flows: dict[int, FlowLog] = {}
    for interval in test["intervals"]:
        # Times begin again after those that are omitted.
        for stream in (s for s in interval["streams"] if not s.get("omitted")):
            name = f"stream {stream['socket']}"
            flow = flows.setdefault(stream["socket"], FlowLog(name, protocol, [], []))
            _add_iperf3(flow, stream, mss)
    return list(flows.values())


def _add_iperf3(flow: FlowLog, stream: dict[str, Any], mss: float) -> None:
    flow.t_s.append(float(stream["end"]))
    flow.rate_mbps.append(float(stream["bits_per_second"]) / 1e6)
    if "rtt" in stream:
        flow.rtt_ms.append(float(stream["rtt"]) / 1e3)
    if "snd_cwnd" in stream and mss > 0:
        flow.cwnd_packets.append(float(stream["snd_cwnd"]) / mss)
    if "retransmits" in stream:
        flow.retransmits.append(int(stream["retransmits"]))
    if "lost_packets" in stream:
        flow.lost.append(int(stream["lost_packets"]))
        flow.jitter_ms.append(float(stream["jitter_ms"]))
    if "packets" in stream:
        flow.packets.append(int(stream["packets"]))


_IPERF2 = re.compile(
    r"^\[\s*(?P<id>SUM|\*?\d+)\](?:\s*\S*)?\s+(?P<from>[\d.]+)-\s*(?P<to>[\d.]+)\s+sec\s+"
    r"[\d.]+ [KMG]?Bytes\s+(?P<rate>[\d.]+) (?P<unit>[KMG]?)bits/sec"
    r"(?:\s+(?P<jitter>[\d.]+) ms\s+(?P<lost>\d+)/\s*(?P<all>\d+))?"
)
_IPERF2_BEGINS = re.compile(r"^\[\s*(?P<id>\*?\d+)\] local \S+ port \d+ connected")
_FACTOR = {"": 1e-6, "K": 1e-3, "M": 1.0, "G": 1e3}


def iperf2(path: str | PathLike[str]) -> list[FlowLog]:
    """Read the text that ``iperf`` (version 2) prints with ``-i``.

    Lines with sums and lines for the whole test are left out.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    LogError
        It contains no line for an interval.
    """
    text = _text(path)
    protocol = "udp" if "UDP port" in text or "Datagrams" in text else "tcp"
    flows: list[FlowLog] = []
    last: dict[str, FlowLog] = {}
    for line in text.splitlines():
        match = _IPERF2.match(line)
        if match and match["id"] != "SUM":
            flow = last.get(match["id"])
            if flow is None:
                flow = last[match["id"]] = FlowLog(f"stream {match['id']}", protocol, [], [])
                flows.append(flow)
            # A line that begins before the last one ended is for the whole test.
            if not flow.t_s or float(match["from"]) >= flow.t_s[-1]:
                _add_iperf2(flow, match)
        elif begun := _IPERF2_BEGINS.match(line):
            # Versions before 2.1 give the number of a stream that has ended to the next one.
            last.pop(begun["id"], None)
    if not flows:
        raise LogError(f"{fspath(path)} has no line of an interval; run iperf with -i 1")
    return flows


def _add_iperf2(flow: FlowLog, line: re.Match[str]) -> None:
    flow.t_s.append(float(line["to"]))
    flow.rate_mbps.append(float(line["rate"]) * _FACTOR[line["unit"]])
    if line["lost"]:
        flow.jitter_ms.append(float(line["jitter"]))
        flow.lost.append(int(line["lost"]))
        flow.packets.append(int(line["all"]))


_PROTOCOLS = {6: "tcp", 17: "udp", 33: "dccp", 132: "sctp", 136: "udplite"}


def pcap(path: str | PathLike[str], *, every_s: float = 1.0) -> list[FlowLog]:
    """Read a capture, pcap or pcapng: the rate of each direction of each flow, with IP headers.

    Parameters
    ----------
    path
        The file.
    every_s
        Length of an interval in s. Time counts from the first packet of the file. The last
        interval ends with the last packet; if it were less than half as long, it is part of the
        one before.

    Returns
    -------
    list of FlowLog
        One for each source, destination, protocol and ports; the largest first.

    Raises
    ------
    LogError
        The file cannot be read, or is not a capture.

    Warns
    -----
    UserWarning
        The file ends within a packet, as one of a ``tcpdump`` that was killed. That packet is left
        out.
    """
    if not every_s > 0:
        raise ValueError(f"intervals of {every_s} s: they must be above 0 s")
    ways, times_s, of, lengths, cut_at = _native.read_capture(fspath(path))
    if cut_at is not None:
        text = f"{fspath(path)} is cut short: the packet that begins at byte {cut_at} is left out"
        warnings.warn(text, stacklevel=2)
    span_s = max(times_s, default=0.0)
    count = max(round(span_s / every_s), 1)
    volume = [[0] * count for _ in ways]
    packets = [[0] * count for _ in ways]
    for at, way, length in zip(times_s, of, lengths, strict=True):
        interval = min(int(at / every_s), count - 1)
        volume[way][interval] += length
        packets[way][interval] += 1
    # All packets of a capture at one time: how long it took is not known.
    ends = [every_s * (i + 1) for i in range(count - 1)] + [span_s or every_s]
    long_s = [end - begin for begin, end in zip([0.0, *ends], ends, strict=False)]
    flows: list[tuple[int, FlowLog]] = []
    for way, (source, sport, target, dport, number) in enumerate(ways):
        protocol = _PROTOCOLS.get(number, str(number))
        name = f"{source}:{sport} > {target}:{dport}"
        rates = [8e-6 * size / long for size, long in zip(volume[way], long_s, strict=True)]
        log = FlowLog(name, protocol, list(ends), rates, packets=packets[way])
        flows.append((sum(volume[way]), log))
    flows.sort(key=lambda pair: -pair[0])
    return [log for _, log in flows]


_STAMP = re.compile(r"^\s*(\d{9,11}(?:\.\d+)?)\s*$")
# `ss` leaves the state out where it is selected, and with -O the rest follows in the same line.
_PEERS = re.compile(r"^\s*(?:[A-Z]\S*\s+)?\d+\s+\d+\s+(\S+:\S+)\s+(\S+:\S+)")


def ss(path: str | PathLike[str]) -> list[FlowLog]:
    """Read a log of ``ss``: repeated output of ``ss -tin``, each after a line with the time.

    Record one with ``while sleep 0.1; do date +%s.%N; ss -tinH; done > ss.log``. The fields are
    those of ``tcp_info``: ``cwnd``, ``rtt``, ``bytes_acked``, ``retrans``.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    LogError
        It contains no time, or no connection.
    """
    now: float | None = None
    first: float | None = None
    peers = ""
    acked: dict[str, tuple[float, int, int]] = {}
    flows: dict[str, FlowLog] = {}
    for line in _text(path).splitlines():
        stamp = _STAMP.match(line)
        if stamp:
            now = float(stamp[1])
            first = now if first is None else first
        elif found := _PEERS.match(line):
            peers = f"{found[1]} > {found[2]}"
        if "cwnd:" in line and now is not None and first is not None:
            fields = dict(part.split(":", 1) for part in line.split() if ":" in part)
            total = int(fields.get("bytes_acked", "0"))
            again = int(fields.get("retrans", "0/0").split("/")[-1])
            at = now - first
            flow = flows.setdefault(peers, FlowLog(peers, "tcp", [], [], begin_s=at))
            if peers in acked and at > acked[peers][0]:
                before, bytes_before, again_before = acked[peers]
                flow.t_s.append(at)
                flow.rate_mbps.append(8e-6 * (total - bytes_before) / (at - before))
                flow.retransmits.append(again - again_before)
                flow.cwnd_packets.append(float(fields["cwnd"]))
                flow.rtt_ms.append(float(fields.get("rtt", "nan").split("/")[0]))
            acked[peers] = (at, total, again)
    if first is None or not flows:
        raise LogError(
            f"{fspath(path)} is not a log of ss: write `date +%s.%N; ss -tinH` again and again"
        )
    return [flow for flow in flows.values() if flow.t_s]


def frame(flows: Iterable[FlowLog], library: Library | None = None) -> Frame:
    """Make a table with a row for each interval of each flow.

    Parameters
    ----------
    flows
        The flows that a reader returned.
    library
        ``"polars"`` or ``"pandas"``; by default the one that is installed.
    """
    columns: dict[str, list[Any]] = {}
    names = ["rate_mbps", "rtt_ms", "cwnd_packets", "retransmits", "lost", "packets", "jitter_ms"]
    for flow in flows:
        count = len(flow.t_s)
        columns.setdefault("flow", []).extend([flow.name] * count)
        columns.setdefault("protocol", []).extend([flow.protocol] * count)
        columns.setdefault("t_s", []).extend(flow.t_s)
        for name in names:
            values: Sequence[float | None] = getattr(flow, name) or [None] * count
            columns.setdefault(name, []).extend(values)
    return make_frame(columns, library)
