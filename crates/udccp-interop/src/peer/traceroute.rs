//! `traceroute -D`: sends a Request to each hop; the last host answers.

use std::io;
use std::process::Command;

use super::Side;

/// The hosts on the path to the other side as printed by `traceroute`, nearest first; `*` for no
/// answer.
pub(super) fn way(side: &Side) -> io::Result<String> {
    let mut command = Command::new("traceroute");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    // Without name resolution; one probe per hop, one at a time.
    command.args(["-D", "-n", "-q", "1", "-N", "1", "-w", "5", "-m", "4", "-p"]);
    command.arg(side.port.to_string()).arg(side.remote.to_string());
    let output =
        command.output().map_err(|e| io::Error::new(e.kind(), format!("traceroute: {e}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("traceroute: {}", said.trim())));
    }
    Ok(hosts(&String::from_utf8_lossy(&output.stdout)))
}

/// The second word of each line except the title.
fn hosts(printed: &str) -> String {
    let found = printed.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    found.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_from_what_is_printed() {
        let printed = "traceroute to 10.2.0.1 (10.2.0.1), 4 hops max, 60 byte packets\n \
                       1  10.1.0.9  40.1 ms\n 2  *\n 3  10.2.0.1  80.4 ms\n";
        assert_eq!(hosts(printed), "10.1.0.9 * 10.2.0.1");
    }
}
