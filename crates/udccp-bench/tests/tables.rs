//! Checks that the program measures every peer with every load, and that its tables are complete.

#![cfg(target_os = "linux")]

use std::process::Command;

#[test]
fn every_peer_has_its_figures() {
    let done = Command::new(env!("CARGO_BIN_EXE_udccp-bench"))
        .args(["--rounds", "1", "--seconds", "0.02", "--connections", "10"])
        .output()
        .expect("the program runs");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if err.contains("making network namespaces") {
        // No permission to create namespaces, as in some containers.
        return;
    }
    assert!(done.status.success(), "{err}");
    for heading in [
        "Messages of",
        "answer",
        "100 connections",
        "made and closed",
        "Many connections, ",
        "nothing",
    ] {
        assert!(out.contains(heading), "no {heading} in:\n{out}");
    }
    assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
}

#[test]
fn a_peer_that_cannot_do_a_load_is_named() {
    let done = Command::new(env!("CARGO_BIN_EXE_udccp-bench"))
        .args(["handshakes", "--peer", "floor"])
        .output()
        .expect("the program runs");
    let err = String::from_utf8_lossy(&done.stderr);
    let is_refused = err.contains("Handshakes is not measured of Floor");
    assert!(is_refused || err.contains("making network namespaces"), "{err}");
    assert!(!done.status.success());
}

/// Bytes and allocations of one end of an idle connection. `None` without permission to create
/// namespaces.
fn idle_connection() -> Option<[f64; 2]> {
    let done = Command::new(env!("CARGO_BIN_EXE_udccp-bench"))
        .args(["idle", "--peer", "udccp", "--connections", "500"])
        .output()
        .expect("the program runs");
    if String::from_utf8_lossy(&done.stderr).contains("making network namespaces") {
        return None;
    }
    let figures: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    Some([0, 1].map(|n| figures["heap"][n].as_f64().expect("a number")))
}

/// Limits the memory of each of many connections.
#[test]
fn an_idle_connection_is_small() {
    // Builds with debug assertions also unpack the negotiated feature values, to compare them.
    let compared = if cfg!(debug_assertions) { 2.0 } else { 0.0 };
    let mut found = Vec::new();
    // Where a stall lets datagrams come together, the two sockets get up to 28 more receive buffers
    // and 7 more transmit buffers of 64 KiB: 66 to 4,600 bytes a connection. Buffers freed
    // meanwhile would make connections look smaller than the struct alone.
    for _ in 0..8 {
        let Some([bytes, allocations]) = idle_connection() else { return };
        if (1300.0..2100.0).contains(&bytes) && allocations < 6.0 + compared {
            return;
        }
        found.push((bytes, allocations));
    }
    panic!("bytes and allocations: {found:?}");
}
