//! Stories by chance; `fuzz/fuzz_targets/connection.rs` tells more of them.

mod machine;

use udccp_base::Seed;

#[test]
fn nothing_that_happens_to_a_connection_makes_it_panic_or_get_stuck() {
    let mut rng = Seed(4340).stream("stories");
    for number in 0..400 {
        let len = rng.below(160) as usize;
        let bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
        let told = std::panic::catch_unwind(|| machine::tell(&bytes, number % 8 == 0));
        assert!(told.is_ok(), "story {number}: {bytes:?}");
    }
}
