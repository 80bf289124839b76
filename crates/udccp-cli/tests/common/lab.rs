//! A temporary folder with a small experiment.

use super::stdout;

/// Eight runs of a slow path, each a few milliseconds to some tenths of a second.
pub const SMALL: &str = r#"schema = 1
id = "small"
asks = "Who gets what of a slow path?"
[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s" }
bottleneck = { rate = "3 Mbit/s", rtt = "$rtt", limit = "1.0 bdp" }
[time]
duration = "6 s"
phase = "500 ms"
measure = { from = "2 s", to = "6 s" }
[[flow]]
name = "first"
protocol = "dccp/ccid2"
traffic = "bulk"
[[flow]]
name = "second"
protocol = "tcp/newreno"
traffic = "bulk"
[grid]
rtt = ["20 ms", "40 ms", "60 ms", "80 ms"]
runs = 2
seed = 5
[[table]]
id = "shares"
metric = "goodput"
rows = "rtt"
columns = "flow"
"#;

/// A folder with an experiment in it.
pub struct Lab {
    pub folder: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir_all(folder.path().join("experiments")).expect("a folder");
        std::fs::write(folder.path().join("experiments/small.toml"), SMALL).expect("a file");
        Self { folder }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn args(&self, command: &str, store: &str) -> Vec<String> {
        let mut args: Vec<String> = vec!["lab".into(), command.into()];
        args.extend(["--experiments".into(), self.path("experiments")]);
        args.extend(["--store".into(), self.path(store)]);
        args
    }

    pub fn run(&self, command: &str, store: &str, more: &[&str]) -> String {
        let args = self.args(command, store);
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(more);
        stdout(&args)
    }
}
