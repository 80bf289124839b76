//! Scenarios of the tests.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::fs;

use udccp_lab::schema::Experiment;
use udccp_scenario::schema::Scenario;

/// Ten seconds of a dumbbell with this bottleneck and these flows.
pub fn scenario(bottleneck: &str, flows: &str) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.toml");
    let text = format!(
        r#"
schema = 1
id = "test"
asks = "What is it made of?"
[topology]
shape = "dumbbell"
access = {{ rate = "1 Gbit/s", delay = "1 ms" }}
bottleneck = {{ {bottleneck} }}
[time]
duration = "10 s"
phase = "100 ms"
measure = {{ from = "4 s", to = "10 s", every = "1 s" }}
{flows}
"#
    );
    fs::write(&file, text).unwrap();
    let experiment = Experiment::load(&file).unwrap();
    experiment.part(None).unwrap().scenario(&Vec::new(), &[]).unwrap()
}

/// A typical bottleneck.
pub const USUAL: &str = r#"rate = "10 Mbit/s", rtt = "40 ms", limit = "1.0 bdp""#;

/// A bulk flow with additional keys.
pub fn bulk(name: &str, protocol: &str, more: &str) -> String {
    format!("[[flow]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\ntraffic = \"bulk\"\n{more}\n")
}
