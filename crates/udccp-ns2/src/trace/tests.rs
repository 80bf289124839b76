use super::*;

fn packet(text: &str) -> Packet {
    match parse(text.as_bytes()) {
        Ok(Line::Packet(packet)) => packet,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn packets_are_read_as_ns_2_writes_them() {
    let sent = packet("+ 10.001007 2 3 DCCP_Data 516 ------- 1 2.0 5.0 -1 499");
    let expected = Packet {
        happened: EventKind::Sent,
        at_ns: 10_001_007_000,
        flow: 1,
        source: 2,
        bytes: 516,
        has_data: true,
        segment: 0,
        number: 499,
    };
    assert_eq!(sent, expected);
    let segment = packet("r 0.131272 0 1 tcp 1500 ---A-EN 0 0.0 1.0 7 4");
    assert_eq!((segment.happened, segment.segment), (EventKind::Arrived, 7));
    assert!(segment.has_data);
    assert_eq!(packet("d 0.5 0 1 cbr 528 ------- 3 8.0 9.0 2 7").happened, EventKind::Dropped);
}

#[test]
fn only_what_carries_data_has_data() {
    for (name, segment, expected) in [
        ("tcp", 0, false),
        ("tcp", 1, true),
        ("ack", 5, false),
        ("DCCP_DataAck", -1, true),
        ("DCCP_Ack", -1, false),
        ("DCCP_Request", -1, false),
        ("cbr", 0, true),
    ] {
        let line = format!("+ 1 0 1 {name} 100 ------- 0 0.0 1.0 {segment} 4");
        assert_eq!(packet(&line).has_data, expected, "{line}");
    }
}

#[test]
fn times_are_exact_to_the_nanosecond() {
    for (text, ns) in [
        ("0", 0),
        ("0.3", 300_000_000),
        ("999.999999", 999_999_999_000),
        ("12.000000001", 12_000_000_001),
        ("1e-05", 10_000),
        ("7", 7_000_000_000),
    ] {
        assert_eq!(time_ns(text), Some(ns), "{text}");
    }
    for text in ["", "-1", "nan", "inf", "1.5s", "1e300", "99999999999999999999"] {
        assert_eq!(time_ns(text), None, "{text}");
    }
}

#[test]
fn lines_added_by_the_script_are_parsed() {
    let expected = Sender {
        flow: 1,
        interval: 9,
        cwnd_packets: Some(17.5),
        cuts: 3,
        timeouts: 1,
        retransmits: 12,
        srtt_s: None,
    };
    assert_eq!(parse(b"F 1 9 17.5 3 1 12 -"), Ok(Line::Flow(expected)));
    // Before its first sample, CCID 2 has an RTT of -1.
    let Ok(Line::Flow(early)) = parse(b"F 0 0 3 0 0 0 -1.0") else { panic!("no line") };
    assert_eq!(early.srtt_s, None);
    let expected = Counters {
        link: 1,
        at_ns: 2_500_000_000,
        arrived: [10, 15_000],
        departed: [8, -12],
        dropped: [1, 1500],
        waiting: [1, 1500],
    };
    let line = parse(b"L 1 2.500000000 10 15000 8 -12 1 1500 1 1500");
    assert_eq!(line, Ok(Line::Queue(expected)));
    assert_eq!(parse(b"E"), Ok(Line::End));
}

#[test]
fn invalid_lines_report_the_missing_field() {
    for (line, what) in [
        ("", "kind"),
        ("h 1.0 0 1", "kind"),
        ("+ x 0 1 tcp 40 ------- 0 0.0 1.0 0 0", "time"),
        ("+ 1.0 0 1 tcp -40 ------- 0 0.0 1.0 0 0", "size"),
        ("+ 1.0 0 1 tcp 40 ------- 0 0 1.0 0 0", "source"),
        ("+ 1.0 0 1 tcp 40 ------- 0 0.0 1.0 0", "packet number"),
        ("F 1 9 17.5", "cuts"),
        ("L 1 2.5 1 2 3 4 5 6 7", "waiting packets"),
    ] {
        let error = parse(line.as_bytes()).unwrap_err();
        assert!(error.contains(&format!("no {what}")), "{line}: {error}");
    }
    assert!(parse(&[0xff, 0xfe]).unwrap_err().contains("not text"));
}
