"""Logs of other tools, and their metrics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from udccp import lab, logs, metrics

IPERF2 = """------------------------------------------------------------
Server listening on UDP port 5001
[  3] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 40000
[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams
[  3]  0.0- 1.0 sec  1.19 MBytes  10.0 Mbits/sec   0.012 ms    0/  851 (0%)
[  3]  1.0- 2.0 sec   610 KBytes  5000 Kbits/sec   0.015 ms    4/  425 (0.94%)
[  3]  2.0- 3.0 sec  1.19 MBytes  10.0 Mbits/sec   0.011 ms    0/  851 (0%)
[  3]  0.0- 3.0 sec  2.98 MBytes  8.33 Mbits/sec   0.011 ms    4/ 2127 (0.19%)
"""

IPERF2_CLIENT = """------------------------------------------------------------
Client connecting to 127.0.0.1, UDP port 5298
[  1] local 127.0.0.1 port 42500 connected with 127.0.0.1 port 5298
[ ID] Interval       Transfer     Bandwidth
[  1] 0.0000-1.0000 sec   635 KBytes  5.20 Mbits/sec
[  1] 1.0000-2.0000 sec   647 KBytes  5.30 Mbits/sec
[  1] 0.0000-2.0035 sec  1.25 MBytes  5.25 Mbits/sec
[  1] Sent 895 datagrams
[  1] Server Report:
[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams
[  1] 0.0000-2.0037 sec  1.25 MBytes  5.25 Mbits/sec   0.001 ms 0/894 (0%)
"""

SS = """1700000000.0
ESTAB 0 0 10.0.0.1:40000 10.0.0.2:5001
\t cubic wscale:7,7 rto:204 rtt:20.5/1.0 mss:1448 cwnd:10 bytes_acked:1000 retrans:0/0
1700000000.5
ESTAB 0 0 10.0.0.1:40000 10.0.0.2:5001
\t cubic wscale:7,7 rto:204 rtt:21.0/1.0 mss:1448 cwnd:20 bytes_acked:126000 retrans:0/2
1700000001.5
ESTAB 0 0 10.0.0.1:40000 10.0.0.2:5001
\t cubic wscale:7,7 rto:204 rtt:22.0/1.0 mss:1448 cwnd:30 bytes_acked:376000 retrans:0/3
"""


def iperf3_json(*, omits: bool = False) -> str:
    """Two TCP streams of two intervals, in the format of iperf 3.16."""

    def stream(socket: int, end: float, rate: float, *, omitted: bool = False) -> dict[str, object]:
        return {
            "omitted": omitted,
            "socket": socket,
            "start": end - 1.0,
            "end": end,
            "seconds": 1.0,
            "bytes": int(rate / 8),
            "bits_per_second": rate,
            "retransmits": 1,
            "snd_cwnd": 14480,
            "rtt": 25000,
        }

    intervals = [{"streams": [stream(5, end, 30e6), stream(7, end, 10e6)]} for end in (1.0, 2.0)]
    if omits:
        first = [{"streams": [stream(5, end, 90e6, omitted=True)]} for end in (1.0, 2.0, 3.0)]
        intervals = [*first, *intervals]
    start = {"test_start": {"protocol": "TCP"}, "tcp_mss_default": 1448}
    return json.dumps({"start": start, "intervals": intervals, "end": {}})


def test_iperf3(tmp_path: Path) -> None:
    """Rates, windows and round-trip times of each stream, and fairness between them."""
    path = tmp_path / "iperf3.json"
    path.write_text(iperf3_json())
    first, second = logs.iperf3(path)
    assert (first.protocol, first.t_s, first.rate_mbps) == ("tcp", [1.0, 2.0], [30.0, 30.0])
    assert (first.rtt_ms, first.cwnd_packets, first.retransmits) == ([25.0] * 2, [10.0] * 2, [1, 1])
    assert metrics.jain([first.mean_mbps, second.mean_mbps]) == pytest.approx(0.8)
    assert logs.frame([first, second], "polars").shape == (4, 10)


def test_iperf3_without_what_it_omits(tmp_path: Path) -> None:
    """With ``-O 3``, times restart after three intervals that do not count."""
    path = tmp_path / "iperf3.json"
    path.write_text(iperf3_json(omits=True))
    first, second = logs.iperf3(path)
    assert (first.t_s, first.mean_mbps) == ([1.0, 2.0], 30.0)
    assert (second.t_s, second.mean_mbps) == ([1.0, 2.0], 10.0)


def test_iperf3_at_a_server(tmp_path: Path) -> None:
    """A server writes one result after the other, and an error when it is stopped."""
    stopped = json.dumps({"start": {}, "intervals": [], "error": "interrupt - terminated"})
    path = tmp_path / "iperf3.json"
    path.write_text(f"{iperf3_json()}\n{iperf3_json()}\n{stopped}\n")
    assert [flow.mean_mbps for flow in logs.iperf3(path)] == [30.0, 10.0, 30.0, 10.0]
    path.write_text(stopped)
    with pytest.raises(logs.LogError, match=r"iperf3 says: interrupt - terminated$"):
        logs.iperf3(path)


def test_iperf3_in_events(tmp_path: Path) -> None:
    """``--json-stream`` writes a line for each event."""
    whole = json.loads(iperf3_json())
    events: list[tuple[str, object]] = [("start", whole["start"])]
    events += [*(("interval", one) for one in whole["intervals"]), ("end", None)]
    lines = [json.dumps({"event": event, "data": data}) for event, data in events]
    path = tmp_path / "iperf3.json"
    path.write_text("\n".join(lines))
    assert [flow.mean_mbps for flow in logs.iperf3(path)] == [30.0, 10.0]
    broken = json.dumps({"event": "error", "data": "the server has closed"})
    for text in (broken, "\n".join([*lines[:-1], broken])):
        path.write_text(text)
        with pytest.raises(logs.LogError, match=r"iperf3 says: the server has closed$"):
            logs.iperf3(path)
    path.write_text("\n".join([*lines, broken]))
    assert len(logs.iperf3(path)) == 2, "the test had ended"
    path.write_text(lines[1])
    with pytest.raises(logs.LogError, match=r"is not JSON of iperf3: IndexError"):
        logs.iperf3(path)


def test_both_ways_of_iperf2(tmp_path: Path) -> None:
    """An asterisk marks the reverse direction."""
    path = tmp_path / "iperf.txt"
    path.write_text(IPERF2 + IPERF2.replace("[  3]", "[ *3]"))
    assert [flow.name for flow in logs.iperf2(path)] == ["stream 3", "stream *3"]


def test_a_connection_that_ss_sees_later(tmp_path: Path) -> None:
    """Its mean starts when it was first seen, and not at the start of the log."""
    before = "".join(f"16999999{n}.0\n" for n in (90, 95))
    path = tmp_path / "ss.log"
    path.write_text(before + SS)
    [flow] = logs.ss(path)
    assert flow.begin_s == 10.0
    assert flow.t_s == [10.5, 11.5]
    assert flow.mean_mbps == pytest.approx(2.0)


def test_iperf2(tmp_path: Path) -> None:
    """Units vary by line; losses are read; lines for the whole test are ignored."""
    path = tmp_path / "iperf.txt"
    path.write_text(IPERF2)
    [flow] = logs.iperf2(path)
    assert flow.protocol == "udp"
    assert (flow.t_s, flow.rate_mbps) == ([1.0, 2.0, 3.0], [10.0, 5.0, 10.0])
    assert (flow.lost, flow.packets) == ([0, 4, 0], [851, 425, 851])
    assert flow.mean_mbps == pytest.approx(25 / 3)


def test_iperf2_at_a_client_of_udp(tmp_path: Path) -> None:
    """Its line of the whole test, and that of the server's report, are no intervals."""
    path = tmp_path / "iperf.txt"
    path.write_text(IPERF2_CLIENT)
    [flow] = logs.iperf2(path)
    assert flow.protocol == "udp"
    assert (flow.t_s, flow.rate_mbps, flow.lost) == ([1.0, 2.0], [5.2, 5.3], [])


def test_iperf2_with_one_number_for_two_tests(tmp_path: Path) -> None:
    """A server of iperf 2.0 gives the number of the first test to the second."""
    path = tmp_path / "iperf.txt"
    path.write_text(IPERF2 + IPERF2.replace("10.0 Mbits", "9.0 Mbits"))
    first, second = logs.iperf2(path)
    assert (first.rate_mbps, second.rate_mbps) == ([10.0, 5.0, 10.0], [9.0, 5.0, 9.0])


def test_ss(tmp_path: Path) -> None:
    """Rates between samples that are not evenly spaced."""
    path = tmp_path / "ss.log"
    path.write_text(SS)
    [flow] = logs.ss(path)
    assert flow.name == "10.0.0.1:40000 > 10.0.0.2:5001"
    assert (flow.t_s, flow.rate_mbps) == ([0.5, 1.5], [2.0, 2.0])
    assert (flow.cwnd_packets, flow.rtt_ms) == ([20.0, 30.0], [21.0, 22.0])
    assert flow.retransmits == [2, 1]


def test_ss_in_one_line(tmp_path: Path) -> None:
    """``ss -tinHO``, with and without the state: each connection is a flow of its own."""
    one_line = SS.replace("\n\t", " ")
    other = one_line.replace("40000", "40001").replace("000000", "000001")
    for text in (one_line, one_line.replace("ESTAB ", "")):
        path = tmp_path / "ss.log"
        path.write_text(text + other)
        assert [flow.name for flow in logs.ss(path)] == [
            "10.0.0.1:40000 > 10.0.0.2:5001",
            "10.0.0.1:40001 > 10.0.0.2:5001",
        ]


def test_pcap_ends_with_its_last_packet(tmp_path: Path) -> None:
    """A capture of 2.2 s has the rate of 2.2 s, not that of three whole seconds."""
    traffic = {"kind": "constant-rate", "rate": "1 Mbit/s", "size": "1222 B"}
    record = lab.run(
        {
            "schema": 1,
            "id": "short",
            "asks": "What is the rate of a short capture?",
            "topology": {
                "shape": "dumbbell",
                "access": {"rate": "1 Gbit/s", "delay": "1 ms"},
                "bottleneck": {"rate": "10 Mbit/s", "rtt": "10 ms", "limit": "100 packets"},
            },
            "time": {"duration": "2.2 s", "measure": {"from": "1 s", "to": "2 s"}},
            "flow": [{"name": "cbr", "protocol": "udp", "traffic": traffic}],
        },
        pcap=tmp_path,
    )
    [flow] = logs.pcap(tmp_path / "cbr-receiver.pcap")
    assert flow.t_s == [1.0, pytest.approx(2.2, abs=0.02)]
    assert flow.mean_mbps == pytest.approx(record.flow("cbr")["throughput_mbps"], rel=0.01)
    assert logs.pcap(tmp_path / "cbr-receiver.pcap", every_s=10.0)[0].mean_mbps == flow.mean_mbps


def test_a_capture_that_was_cut_off_is_read_up_to_its_last_whole_packet(tmp_path: Path) -> None:
    """A capture whose writer was killed gives a warning, as in tshark, and not an error."""
    short: dict[str, lab.Value] = {"time.duration": "12 s", "time.measure.to": "12 s"}
    lab.run("two-flows-short", set=short, pcap=tmp_path)
    [path] = tmp_path.glob("first*receiver*.pcap")
    whole = sum(sum(flow.packets) for flow in logs.pcap(path))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.warns(UserWarning, match=r"receiver.*\.pcap is cut short: .* at byte \d+ is left"):
        cut = logs.pcap(path)
    assert sum(sum(flow.packets) for flow in cut) == whole - 1
    # Nothing of it is whole.
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(logs.LogError, match="cut short"):
        logs.pcap(path)


def test_pcap_has_the_rates_of_the_record(tmp_path: Path) -> None:
    """A simulation's capture, read like any other, has the throughput of the record."""
    short: dict[str, lab.Value] = {"time.duration": "12 s", "time.measure.to": "12 s"}
    record = lab.run("two-flows-short", set=short, pcap=tmp_path)
    counted: dict[str, int] = {flow["name"]: flow["packets_delivered"] for flow in record.flows}
    for name, protocol in (("first", "dccp"), ("second", "tcp")):
        [path] = tmp_path.glob(f"{name}*receiver*.pcap")
        flow = next(f for f in logs.pcap(path) if f.protocol == protocol)
        assert sum(flow.packets) == counted[name]
        assert 0 < flow.mean_mbps < 20
        series = record.flow(name)["series"]["throughput_mbps"]
        assert max(flow.rate_mbps) == pytest.approx(max(series), rel=0.2)


def test_invalid_log_is_reported(tmp_path: Path) -> None:
    """Each reader with a text that is not its log, and with a missing file."""
    path = tmp_path / "text"
    path.write_text("no log at all\n")
    for read in (logs.iperf3, logs.iperf2, logs.ss, logs.pcap):
        with pytest.raises(logs.LogError, match="text"):
            read(path)
        with pytest.raises(logs.LogError, match=r"^cannot (read|open) .*none: No such file"):
            read(tmp_path / "none")
    path.write_text('{"error": "unable to connect"}')
    with pytest.raises(logs.LogError, match=r"text: iperf3 says: unable to connect$"):
        logs.iperf3(path)
    path.write_text("[" * 100_000)
    with pytest.raises(logs.LogError, match=r"text is not JSON of iperf3: RecursionError"):
        logs.iperf3(path)
    with pytest.raises(ValueError, match="above 0"):
        logs.pcap(path, every_s=0)
