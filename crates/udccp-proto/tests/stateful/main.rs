//! Random runs of `machine.rs`; `fuzz/fuzz_targets/connection.rs` runs more.

mod machine;

use udccp_base::Seed;

#[test]
fn random_events_cause_no_panic_or_deadlock() {
    let mut rng = Seed(4340).stream("stories");
    for number in 0..400 {
        let len = rng.below(240) as usize;
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
        // Use each starting point in turn.
        if let Some(first) = bytes.first_mut() {
            *first = number as u8 % machine::count_start_states();
        }
        let outcome = std::panic::catch_unwind(|| machine::run(&bytes, number % 8 == 0));
        assert!(outcome.is_ok(), "session {number}: {bytes:?}");
    }
}

#[test]
fn mostly_idle_sender_still_gets_through() {
    for start_state in 0..machine::count_start_states() {
        // A message of the client, 512 of the server, another of the client.
        let session = [start_state, 12, 0, 9, 0, 14, 1, 255, 40, 14, 1, 255, 7, 12, 0, 9, 0, 10, 0];
        machine::run(&session, true);
    }
}
