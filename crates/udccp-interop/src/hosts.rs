//! Builds the network of a test: client, router and server in namespaces.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use udccp_netns::{Namespace, RoutedPair};

use crate::plan::{Condition, MatrixEntry, Stack};

/// Rules that keep the kernel's DCCP quiet on a host that runs our stack: they drop packets that
/// belong to no socket, which are the kernel's answers to packets of unknown connections.
const MUTE: &str = "\
table inet udccp {
  chain output {
    type filter hook output priority 0; policy accept;
    meta l4proto 33 meta skuid >= 0 accept
    meta l4proto 33 drop
  }
}
";

/// The network of a test case.
pub(crate) fn network_of(entry: &MatrixEntry) -> io::Result<RoutedPair> {
    let pair = RoutedPair::new()?;
    impair(&pair.router, entry.condition)?;
    for (host, stack) in [(&pair.client, entry.client), (&pair.server, entry.server)] {
        if stack == Stack::Ours && udccp::kernel_has_dccp() {
            run(host, "nft", "-f -", MUTE)?;
        }
    }
    Ok(pair)
}

/// Runs a program on a host.
fn run(host: &Namespace, program: &'static str, args: &str, input: &'static str) -> io::Result<()> {
    let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    host.run(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        feed(program, &args, input)
    })
}

fn impair(router: &Namespace, condition: Condition) -> io::Result<()> {
    for device in ["left", "right"] {
        let netem = condition.netem();
        run(router, "tc", &format!("qdisc add dev {device} root netem {netem}"), "")?;
    }
    Ok(())
}

/// Runs a program with an input. Returns an error if it fails.
fn feed(program: &str, args: &[&str], input: &str) -> io::Result<()> {
    let mut child = Command::new(program)
        .args(args)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    if let Some(mut pipe) = child.stdin.take() {
        let _ = pipe.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("{program} {}: {said}", args.join(" "))))
}
