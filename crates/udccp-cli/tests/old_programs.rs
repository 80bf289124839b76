//! Programs that open SOCK_DCCP, under `udccp run`.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stderr, reason = "a test that skips says so")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use tempfile::TempDir;

/// A separate folder for the brokers of each test.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn run(&self, flags: &[&str], program: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_udccp"))
            .env("XDG_RUNTIME_DIR", self.0.path())
            .arg("run")
            .args(flags)
            .arg("--")
            .args(program)
            .output()
            .unwrap()
    }

    /// Regression: a broker that keeps a socket of a dead program never exits.
    #[expect(clippy::disallowed_methods, reason = "another process ends in its own time")]
    fn wait_until_the_broker_ends(&self) {
        let is_there = || {
            let files = std::fs::read_dir(self.0.path().join("udccp")).unwrap();
            files.flatten().any(|file| file.path().extension().is_some_and(|e| e == "sock"))
        };
        for _ in 0..1200 {
            if !is_there() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("the broker still runs");
    }
}

fn script(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old_programs");
    folder.join(name).display().to_string()
}

#[track_caller]
fn succeeds(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// A UDP port for the servers of one test.
fn free_port() -> String {
    udccp_testkit::ports::free().to_string()
}

#[test]
fn every_call_does_what_linux_documents() {
    let place = Place::new();
    succeeds(&place.run(&["--udp-port", &free_port()], &["python3", &script("calls.py")]));
}

#[test]
fn every_wrong_call_has_its_documented_errno() {
    let (place, port) = (Place::new(), free_port());
    let program = ["env", &format!("TEST_UDP_PORT={port}"), "python3", &script("bad_input.py")];
    succeeds(&place.run(&["--udp-port", &port], &program));
}

#[test]
fn sockets_share_a_port_as_linux_tests_it() {
    let place = Place::new();
    succeeds(&place.run(&["--udp-port", &free_port()], &["python3", &script("reuseport.py")]));
    place.wait_until_the_broker_ends();
}

#[test]
fn shared_memory_survives_threads_kills_and_corruption() {
    let place = Place::new();
    succeeds(&place.run(&["--udp-port", &free_port()], &["python3", &script("ring.py")]));
    place.wait_until_the_broker_ends();
}

#[test]
fn real_time_program_does_not_block_its_broker() {
    let place = Place::new();
    let program = ["python3", &script("ring.py"), "alone_a_program_of_real_time_priority_sends"];
    succeeds(&place.run(&["--udp-port", &free_port()], &program));
}

#[test]
fn descriptor_limits_and_concurrent_shutdowns_are_handled() {
    let (place, port) = (Place::new(), free_port());
    let program = ["env", &format!("TEST_UDP_PORT={port}"), "python3", &script("limits.py")];
    succeeds(&place.run(&["--udp-port", &port], &program));
    place.wait_until_the_broker_ends();
}

#[test]
fn a_program_starts_with_the_signals_of_its_caller() {
    let place = Place::new();
    // Services of systemd, for example, start with SIGPIPE ignored.
    let script = "import os, signal, sys\n\
        for how in signal.SIG_DFL, signal.SIG_IGN:\n\
        \x20   signal.signal(signal.SIGPIPE, how)\n\
        \x20   signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR1})\n\
        \x20   run = [sys.argv[1], 'run', '--', 'cat', '/proc/self/status']\n\
        \x20   if os.fork() == 0: os.execv(run[0], run)\n\
        \x20   os.wait()\n";
    let output = Command::new("python3")
        .env("XDG_RUNTIME_DIR", place.0.path())
        .args(["-c", script, env!("CARGO_BIN_EXE_udccp")])
        .output()
        .unwrap();
    succeeds(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let masks = |name: &str| -> Vec<u64> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(|mask| u64::from_str_radix(mask.trim(), 16).unwrap()).collect()
    };
    let [pipe, user] = [Signal::SIGPIPE, Signal::SIGUSR1].map(|signal| 1 << (signal as i32 - 1));
    let ignores: Vec<u64> = masks("SigIgn:").iter().map(|mask| mask & pipe).collect();
    assert_eq!(ignores, [0, pipe]);
    assert_eq!(masks("SigBlk:"), [user, user]);
}

/// Failures print their seed: `random_calls.py SEED 1` repeats one.
#[test]
fn random_calls_on_shared_connections_match_linux() {
    let place = Place::new();
    let program = ["python3", &script("random_calls.py"), "1", "40"];
    succeeds(&place.run(&["--udp-port", &free_port()], &program));
    place.wait_until_the_broker_ends();
}

#[test]
fn a_broker_without_descriptors_says_so() {
    let place = Place::new();
    let program = ["python3", &script("limits.py"), "alone_a_broker_without_descriptors_says_so"];
    succeeds(&place.run(&["--udp-port", &free_port()], &program));
    place.wait_until_the_broker_ends();
}

/// Regression: it kept ended sockets for ever, and so never exited.
#[test]
fn a_broker_ends_although_the_system_lists_no_sockets() {
    let place = Place::new();
    let folder = place.0.path().display();
    let open = "import socket; [socket.socket(2, 6, 33).close() for _ in range(3)]";
    let program = env!("CARGO_BIN_EXE_udccp");
    // Everything in /proc but what is not of the process itself, such as `net`.
    let script = format!(
        "mkdir {folder}/all {folder}/few && ln -s {folder}/all/self {folder}/few/self && \
         mount --bind /proc {folder}/all && mount --bind {folder}/few /proc && \
         test ! -e /proc/net && exec {program} run -- python3 -c '{open}'"
    );
    let alone = |program: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private"]).args(program);
        unshare.env("XDG_RUNTIME_DIR", place.0.path()).output()
    };
    if !alone(&["true"]).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no mount namespace without privileges");
        return;
    }
    succeeds(&alone(&["sh", "-c", &script]).unwrap());
    place.wait_until_the_broker_ends();
}

#[test]
fn a_broker_has_no_limits_of_the_program_that_starts_it() {
    for test in [
        "alone_a_broker_has_no_limits_and_no_folder_of_the_program_that_starts_it",
        "alone_broker_survives_a_file_size_limit",
    ] {
        let place = Place::new();
        let program = ["python3", &script("limits.py"), test];
        succeeds(&place.run(&["--udp-port", &free_port()], &program));
        place.wait_until_the_broker_ends();
    }
}

/// Regression: the thread's first `write` waited for the loader's lock, whose holder waited for the
/// thread.
#[test]
fn library_constructor_waiting_for_a_thread_does_not_deadlock() {
    let (place, folder) = (Place::new(), TempDir::new().unwrap());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (library, program) = (path("waits.so"), path("program"));
    for (to, flags) in [(&library, ["-DLIBRARY", "-shared"]), (&program, ["-Wall", "-Wextra"])] {
        let source = script("load.c");
        let output = Command::new("cc")
            .args(flags)
            .args(["-fPIC", "-o", to, &source, "-ldl", "-lpthread"])
            .output();
        let Ok(output) = output else {
            eprintln!("skipped: there is no C compiler");
            return;
        };
        succeeds(&output);
    }
    succeeds(&place.run(&["--udp-port", &free_port()], &[&program, &library]));
}

#[test]
fn faults_of_linux_are_off_unless_named() {
    let place = Place::new();
    let port = free_port();
    for fault in ["send-eagain", "reset-is-end", "no-source", "close-drops"] {
        let flags = ["--udp-port", &port, "--linux-fault", fault];
        let file = script("faults.py");
        succeeds(&place.run(&flags, &["python3", &file, fault, "on"]));
        succeeds(&place.run(&flags[..2], &["python3", &file, fault, "off"]));
    }
}

#[test]
fn a_killed_broker_is_an_error_and_never_a_hang() {
    let place = Place::new();
    let program = ["python3", &script("killed.py"), "2"];
    succeeds(&place.run(&["--udp-port", &free_port()], &program));
}

/// Runs a script over raw IP, in a separate network.
fn over_raw_ip(name: &str) {
    let place = Place::new();
    let namespace = |command: &str| {
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "sh", "-c", command])
            .env("XDG_RUNTIME_DIR", place.0.path())
            .output()
    };
    if !namespace("ip link set lo up").is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no network namespace can be made here");
        return;
    }
    let (udccp, file) = (env!("CARGO_BIN_EXE_udccp"), script(name));
    let command = format!("ip link set lo up; '{udccp}' run --raw-ip -- python3 '{file}'");
    succeeds(&namespace(&command).unwrap());
}

#[test]
fn raw_ip_without_the_right_to_it_warns() {
    let place = Place::new();
    let udccp = env!("CARGO_BIN_EXE_udccp");
    let outside = |program: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user"]).args(program);
        unshare.env("XDG_RUNTIME_DIR", place.0.path()).output()
    };
    if !outside(&["true"]).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no user namespace can be made here");
        return;
    }
    for (flags, warns) in [(&["--raw-ip"][..], true), (&[], false)] {
        let output = outside(&[&[udccp, "run"], flags, &["--", "true"]].concat()).unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        let is_there = message.contains("warning: no permission") && message.contains("setcap");
        assert_eq!(is_there, warns, "{message}");
    }
}

#[test]
fn the_same_calls_over_raw_ip() {
    over_raw_ip("calls.py");
}

#[test]
fn listeners_of_several_addresses_over_raw_ip() {
    over_raw_ip("addresses.py");
}

#[test]
fn listeners_of_several_addresses_live_side_by_side() {
    let place = Place::new();
    succeeds(&place.run(&["--udp-port", &free_port()], &["python3", &script("addresses.py")]));
    place.wait_until_the_broker_ends();
}

#[test]
fn a_program_of_musl_runs_and_a_static_one_is_refused() {
    let (place, folder) = (Place::new(), TempDir::new().unwrap());
    let compile = |flag: &str, name: &str| {
        let program = folder.path().join(name).display().to_string();
        let output =
            Command::new("musl-gcc").args([flag, "-o", &program, &script("musl.c")]).output();
        succeeds(&output.ok()?);
        Some(program)
    };
    let Some(program) = compile("-O1", "program") else {
        eprintln!("skipped: there is no musl-gcc");
        return;
    };
    succeeds(&place.run(&["--udp-port", &free_port()], &[&program]));
    let program = compile("-static", "static").unwrap();
    let output = place.run(&[], &[&program]);
    assert_eq!(output.status.code(), Some(10));
    assert!(String::from_utf8_lossy(&output.stderr).contains("statically linked"));
}

#[test]
fn programs_as_linux_documents_them() {
    let (place, folder) = (Place::new(), TempDir::new().unwrap());
    for name in ["options", "priority", "echo"] {
        let program = folder.path().join(name).display().to_string();
        let source = script(&format!("linux/{name}.c"));
        let compiler =
            Command::new("cc").args(["-Wall", "-Werror", "-o", &program, &source]).output();
        let Ok(output) = compiler else {
            eprintln!("skipped: there is no C compiler");
            return;
        };
        succeeds(&output);
        succeeds(&place.run(&["--udp-port", &free_port()], &[&program]));
    }
    place.wait_until_the_broker_ends();
}

/// A C program with the note of Go's linker: it runs, with a warning.
#[test]
fn go_program_runs_with_a_warning() {
    let (place, folder) = (Place::new(), TempDir::new().unwrap());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let note = r#"__asm__(".pushsection .note.go.buildid,\"a\",%note\n.long 4, 4, 4\n"
        ".asciz \"Go\"\n.balign 4\n.ascii \"id..\"\n.popsection");"#;
    for (name, note) in [("go", note), ("c", "")] {
        let (source, program) = (path(&format!("{name}.c")), path(name));
        std::fs::write(&source, format!("{note}\nint main(void) {{ return 0; }}\n")).unwrap();
        let Ok(output) = Command::new("cc").args(["-o", &program, &source]).output() else {
            eprintln!("skipped: there is no C compiler");
            return;
        };
        succeeds(&output);
        let output = place.run(&["--udp-port", &free_port()], &[&program]);
        succeeds(&output);
        let is_warned = String::from_utf8_lossy(&output.stderr).contains("go is a Go program");
        assert_eq!(is_warned, name == "go", "{output:?}");
    }
}

/// Regression: in the first case, each `socket` call tried for seconds to start a broker that could
/// not listen there; in the others, the loader did not find the library.
#[test]
fn unusable_folder_path_is_rejected() {
    let place = Place::new();
    for (name, why) in [
        ("x".repeat(90), "too long for a socket"),
        ("a b".to_owned(), "a space or a colon"),
        ("a:b".to_owned(), "a space or a colon"),
    ] {
        let folder = place.0.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_udccp"))
            .env("XDG_RUNTIME_DIR", &folder)
            .args(["run", "--", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(why) && message.contains("a short, plain path"), "{message}");
    }
}

/// Regression: with a strict umask, as of a service, the folder and the library in it could not be
/// read, then or later.
#[test]
fn the_umask_does_not_matter() {
    let place = Place::new();
    let command = format!("umask 0777; exec '{}' run -- true", env!("CARGO_BIN_EXE_udccp"));
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &command]).env("XDG_RUNTIME_DIR", place.0.path()).output();
    succeeds(&output.unwrap());
    let folder = place.0.path().join("udccp");
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    assert!(files.iter().any(|file| mode(&file.path()) == 0o644), "{files:?}");
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn folder_that_its_owner_cannot_enter_is_rejected() {
    let place = Place::new();
    let folder = place.0.path().join("udccp");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o600)).unwrap();
    let output = place.run(&[], &["true"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("with mode 0700"), "{output:?}");
}

/// Regression: the loader ignored the library with a message of its own, and the program ran
/// without DCCP.
#[test]
fn folder_on_a_file_system_without_programs_is_rejected() {
    let place = Place::new();
    let within = |command: &str| {
        let folder = place.0.path().display();
        let all = format!("mount -t tmpfs -o noexec,mode=700 tmpfs {folder} && {command}");
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &all])
            .env("XDG_RUNTIME_DIR", place.0.path())
            .output()
    };
    if !within("true").is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no mount namespace can be made here");
        return;
    }
    let output = within(&format!("exec '{}' run -- true", env!("CARGO_BIN_EXE_udccp"))).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("mounted noexec"), "{output:?}");
}

#[test]
fn static_and_foreign_programs_are_refused() {
    let place = Place::new();
    let folder = TempDir::new().unwrap();
    let file: PathBuf = folder.path().join("program");
    // The header of a program for this machine without a dynamic linker.
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    let mut header = vec![0u8; 64];
    header[..6].copy_from_slice(b"\x7fELF\x02\x01");
    header[18] = machine;
    std::fs::write(&file, &header).unwrap();
    let path = file.display().to_string();
    let output = place.run(&[], &[&path]);
    assert_eq!(output.status.code(), Some(10));
    assert!(String::from_utf8_lossy(&output.stderr).contains("statically linked"));
    header[18] = 3;
    std::fs::write(&file, &header).unwrap();
    let output = place.run(&[], &[&path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("another processor"));
    let output = place.run(&[], &["no-such-program-anywhere"]);
    assert_eq!(output.status.code(), Some(4));
}
