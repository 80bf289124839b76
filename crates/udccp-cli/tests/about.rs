//! The program's self-description: version, manual pages, completions, and its log.

mod common;

use std::path::Path;

use common::{Background, fails, perf_server, stdout, udccp};
use udccp_testkit::ports;

/// The subcommands that the help of `path` lists.
fn listed(path: &[&str]) -> Vec<String> {
    let help = stdout(&[path, &["--help"]].concat());
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
        let is_name = line.starts_with("  ") && !line.starts_with("   ");
        line.split_whitespace().next().filter(|name| is_name && *name != "help").map(str::to_owned)
    });
    names.collect()
}

/// Checks that a command and its subcommands have a page in the folder. Returns their number.
fn check_pages(folder: &Path, path: &[&str]) -> usize {
    let name = [&["udccp"], path].concat().join("-") + ".1";
    let page =
        std::fs::read_to_string(folder.join(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    for part in [".TH", "SYNOPSIS", "verbose"] {
        assert!(page.contains(part), "{name} has no {part}");
    }
    let below = listed(path);
    1 + below.iter().map(|n| check_pages(folder, &[path, &[n]].concat())).sum::<usize>()
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1");
    stdout(&["man", "--out", out.to_str().unwrap()]);
    let pages = check_pages(&out, &[]);
    assert!(pages > 20, "{pages} pages");
    let written = std::fs::read_dir(&out).unwrap().count();
    assert_eq!(pages, written, "a page of something that the help does not list");
    let perf = std::fs::read_to_string(out.join("udccp-perf-client.1")).unwrap();
    assert!(perf.contains("json\\-stream"), "{perf}");
    assert!(stdout(&["man"]).contains("Exit codes"), "the page of the program");
    fails(&["man", "--out", "/dev/null/man"], 1, &["cannot write", "hint:"]);
}

#[test]
fn the_reference_names_every_command() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/command-line.md");
    let page = std::fs::read_to_string(page).unwrap();
    for command in listed(&[]) {
        let below = listed(&[&command]);
        let mut words = vec![command.clone()];
        words.extend(below.iter().map(|name| format!("{command} {name}")));
        let any = words.iter().any(|words| page.contains(&format!("`udccp {words}")));
        assert!(any, "docs/reference/command-line.md does not have {command}");
    }
}

#[test]
fn shells_get_completions_of_commands_and_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        for word in ["perf", "json-stream", "completions"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
        assert!(!script.contains("linux-init"), "{shell}: what is hidden is not offered");
    }
    fails(&["completions", "tcsh"], 2, &["tcsh", "bash"]);
}

#[test]
fn bash_takes_the_completions() {
    let script = common::temporary(stdout(&["completions", "bash"]).as_bytes());
    let ask = format!(
        "source {}; COMP_WORDS=(udccp per); COMP_CWORD=1; _udccp udccp per udccp; \
         echo \"${{COMPREPLY[@]}}\"",
        script.path().display()
    );
    let output = std::process::Command::new("bash").args(["-c", &ask]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "perf", "{output:?}");
}

#[test]
fn the_version_says_what_was_built_from_what_and_runs_where() {
    let long = stdout(&["--version"]);
    assert!(long.starts_with(&format!("udccp {}\n", env!("CARGO_PKG_VERSION"))), "{long}");
    for name in ["commit:", "results:", "features:", "target:", "compiler:", "system:"] {
        let line = long.lines().find(|line| line.starts_with(name));
        let value = line.unwrap_or_else(|| panic!("no {name} in {long}")).trim_start_matches(name);
        assert!(!value.trim().is_empty(), "{long}");
    }
    assert!(long.contains("ccid2 ccid3 ccid4"), "{long}");
    assert!(long.contains(std::env::consts::ARCH), "{long}");
    let short = stdout(&["-V"]);
    assert_eq!(short.trim(), format!("udccp {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_report_of_the_machine_names_the_program() {
    let output = udccp(&["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for key in ["version", "commit", "target", "system"] {
        assert!(report.get(key).is_some_and(|v| v.is_string() || v.is_null()), "{key}: {report}");
    }
    assert!(report["features"].as_array().unwrap().contains(&"ccid2".into()), "{report}");
}

/// Runs a short test with these flags and this `RUST_LOG`. Returns its standard error.
fn log_of(port: &str, flags: &[&str], variable: Option<&str>) -> String {
    let fixed = ["perf", "client", "127.0.0.1", "-p", port, "-t", "0.1", "-b", "1M", "--json"];
    let mut command = udccp(&[&fixed, flags].concat());
    command.env_remove("RUST_LOG");
    if let Some(variable) = variable {
        command.env("RUST_LOG", variable);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let json = serde_json::from_slice::<serde_json::Value>(&output.stdout);
    assert!(json.is_ok(), "the log does not mix with the result");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_log_says_how_connections_begin_and_end_and_only_where_it_is_asked_for() {
    let (_server, port) = perf_server(&[]);
    assert_eq!(log_of(&port, &[], None), "");
    let brief = log_of(&port, &["-v"], None);
    for part in ["connection open", "sender_ccid=2", "role=\"client\"", "connection over"] {
        assert!(brief.contains(part), "no {part}: {brief}");
    }
    assert!(!brief.contains("statistics"), "{brief}");
    for more in [log_of(&port, &["-vv"], None), log_of(&port, &[], Some("udccp=debug"))] {
        for part in ["socket open", "connecting", "path_mtu_bytes=", "data_packets_sent"] {
            assert!(more.contains(part), "no {part}: {more}");
        }
        assert!(more.lines().count() < 100, "nothing for each packet: {more}");
    }
    assert_eq!(log_of(&port, &["-v"], Some("off")), "", "RUST_LOG counts where both are given");
}

#[test]
fn the_log_of_a_reset_has_its_reason() {
    let (server, port) = perf_server(&[]);
    let args = ["-v", "perf", "client", "127.0.0.1", "-p", &port, "-t", "60", "-b", "1M"];
    let mut client = Background::start(&args, std::process::Stdio::null());
    client.wait_for("pfda");
    let pid = nix::unistd::Pid::from_raw(server.child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let (_, _, message) = client.output();
    assert!(message.contains("reset by the peer: Aborted"), "{message}");
}

#[test]
fn a_faulty_filter_is_a_usage_error() {
    let port = ports::free().to_string();
    let mut command = udccp(&["perf", "client", "127.0.0.1", "-p", &port]);
    let output = command.env("RUST_LOG", "udccp=loud").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("RUST_LOG") && message.contains("hint:"), "{message}");
}
