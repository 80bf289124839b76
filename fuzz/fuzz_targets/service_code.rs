//! Arbitrary text as a service code: no panic, and the printed code parses to the same code.
#![no_main]

use libfuzzer_sys::fuzz_target;
use udccp_wire::ServiceCode;

fuzz_target!(|text: &str| {
    match text.parse::<ServiceCode>() {
        Ok(code) => assert_eq!(code.to_string().parse(), Ok(code)),
        Err(e) => drop(e.to_string()),
    }
});
