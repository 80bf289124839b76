//! Compiles and runs programs in C and C++: the examples, and those of `tests/c`, which check every
//! call. `UDCCP_CAPI_FLAGS` adds compiler flags, and `UDCCP_CAPI_UNDER` runs the programs under
//! another one (`scripts/capi.sh sanitize`). `UDCCP_CAPI_COMPILER` is the prefix of the names of
//! compilers for Windows (`scripts/capi.sh wine`).

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn words(variable: &str) -> Vec<String> {
    let text = std::env::var(variable).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The folder where cargo puts the library for tests: that of this program.
fn library() -> PathBuf {
    if let Some(folder) = std::env::var_os("UDCCP_CAPI_LIB") {
        return folder.into();
    }
    let this = std::env::current_exe().expect("the path of this program");
    this.parent().expect("a folder").to_path_buf()
}

fn are_for_windows() -> bool {
    std::env::var_os("UDCCP_CAPI_COMPILER").is_some()
}

/// The compiler; if there is none, prints a note and returns `None`.
fn compiler(language: &str) -> Option<String> {
    let name = match (std::env::var("UDCCP_CAPI_COMPILER"), language) {
        (Ok(prefix), "cpp") => format!("{prefix}g++"),
        (Ok(prefix), _) => format!("{prefix}gcc"),
        (Err(_), "cpp") => "c++".to_owned(),
        (Err(_), _) => "cc".to_owned(),
    };
    let found = Command::new(&name).arg("--version").output().is_ok();
    #[expect(clippy::print_stderr, reason = "a test that does not run says so")]
    if !found {
        eprintln!("skipped: there is no {name}");
    }
    found.then_some(name)
}

/// Compiles a source as standard C or C++, with warnings as errors. `None` if there is no compiler.
fn compiled(source: &str) -> Option<(TempDir, PathBuf)> {
    let path = here(source);
    let language = path.extension().expect("a language").to_string_lossy().into_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join(if are_for_windows() { "program.exe" } else { "program" });
    let mut cc = Command::new(compiler(&language)?);
    cc.arg(if language == "cpp" { "-std=c++17" } else { "-std=c11" });
    cc.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-g"]);
    cc.args(words("UDCCP_CAPI_FLAGS"));
    cc.arg("-I").arg(here("include")).arg(&path).arg("-o").arg(&program);
    cc.arg("-L").arg(library());
    cc.arg(std::env::var("UDCCP_CAPI_NAME").unwrap_or_else(|_| "-ludccp_capi".to_owned()));
    // `-pthread` would also declare non-standard functions.
    cc.arg("-lpthread");
    if are_for_windows() {
        // Sockets of Windows.
        cc.arg("-lws2_32");
    } else {
        // An old-style RPATH has priority over LD_LIBRARY_PATH, in which cargo puts the folder of
        // `cargo build` first, with a possibly outdated library.
        cc.arg(format!("-Wl,--disable-new-dtags,-rpath,{}", library().display()));
    }
    let output = cc.output().expect("the compiler was there");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source}: {printed}");
    Some((folder, program))
}

fn run(program: &Path) -> Command {
    let mut under = words("UDCCP_CAPI_UNDER").into_iter();
    let Some(outer) = under.next() else { return Command::new(program) };
    let mut command = Command::new(outer);
    command.args(under).arg(program);
    command
}

/// Runs a program, which must succeed, and returns its output.
fn output(program: &Path, args: &[&str]) -> String {
    let output = run(program).args(args).output().expect("a program");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {}: {printed}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A running program; it is killed at the end of its test.
struct Server {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Server {
    /// Starts a program and reads from its output on which port it listens.
    fn start(program: &Path, args: &[&str]) -> Self {
        let mut child = run(program).args(args).stdout(Stdio::piped()).spawn().expect("a program");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let port = line.trim().strip_prefix("listening on port ").expect("a port");
        let address = format!("127.0.0.1:{port}");
        Self { child, out, address }
    }

    /// Waits until it has ended successfully, and returns the rest of its output.
    fn finish(mut self) -> String {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("UTF-8");
        let status = self.child.wait().expect("a child");
        assert!(status.success(), "{status}");
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ANY: &str = "127.0.0.1:0";

#[test]
fn bad_input_is_an_error_and_never_a_crash() {
    let Some((_folder, program)) = compiled("tests/c/bad_input.c") else { return };
    output(&program, &[]);
}

#[test]
fn calls_in_every_state() {
    let Some((_folder, program)) = compiled("tests/c/states.c") else { return };
    output(&program, &[]);
}

#[test]
fn descriptors_show_what_the_next_call_does() {
    let Some((_folder, program)) = compiled("tests/c/loop.c") else { return };
    output(&program, &[]);
}

#[test]
fn a_forked_child_leaves_its_parents_sockets_alone() {
    let Some((_folder, program)) = compiled("tests/c/fork.c") else { return };
    output(&program, &[]);
}

#[test]
fn the_end_of_a_process_closes_what_is_open() {
    let Some((_folder, program)) = compiled("tests/c/exit.c") else { return };
    for way in ["return", "exit", "kill"] {
        output(&program, &[way]);
    }
}

#[test]
fn echo_and_ping() {
    let Some((_folder, echo)) = compiled("examples/echo.c") else { return };
    let server = Server::start(&echo, &["server", ANY]);
    assert_eq!(output(&echo, &["client", &server.address, "hello", "world"]), "hello\nworld\n");
    let Some((_folder, ping)) = compiled("examples/ping.cpp") else { return };
    let printed = output(&ping, &[&server.address, "10"]);
    assert!(printed.starts_with("10 answers, median "), "{printed}");
}

/// Processor time of a process in ticks of 1/100 s.
fn ticks(of: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", of.id())).expect("a process");
    let after_name = stat.rsplit(") ").next().expect("a name in parentheses");
    after_name.split(' ').skip(11).take(2).map(|n| n.parse::<u64>().expect("a number")).sum()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "what a process uses in a time takes that time")]
fn a_server_with_all_its_clients_does_not_spin() {
    let Some((_folder, echo)) = compiled("examples/echo.c") else { return };
    let Some((_folder, crowd)) = compiled("tests/c/crowd.c") else { return };
    let server = Server::start(&echo, &["server", ANY]);
    let mut crowd = run(&crowd);
    crowd.arg(&server.address).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut crowd = crowd.spawn().expect("a program");
    let mut line = String::new();
    let mut out = BufReader::new(crowd.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "connected\n");
    let before = ticks(&server.child);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let used = ticks(&server.child) - before;
    drop(crowd.stdin.take());
    assert!(crowd.wait().expect("a child").success());
    assert!(used < 30, "the server spun: {used} ticks in a second");
    // The clients in the backlog have also left, and the next one is served.
    assert_eq!(output(&echo, &["client", &server.address, "hello"]), "hello\n");
}

#[test]
fn a_file_arrives_whole() {
    let Some((folder, program)) = compiled("examples/file.c") else { return };
    let (original, copy) = (folder.path().join("original"), folder.path().join("copy"));
    let data: Vec<u8> = (0..300_007_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    std::fs::write(&original, &data).expect("a file");
    let name = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let server = Server::start(&program, &["receive", ANY, &name(&copy)]);
    let printed = output(&program, &["send", &server.address, &name(&original)]);
    assert!(printed.starts_with("293 blocks, "), "{printed}");
    server.finish();
    assert!(std::fs::read(&copy).expect("a copy") == data, "the copy differs");
}

#[test]
fn voice_has_frames_and_counts_them() {
    let Some((_folder, program)) = compiled("examples/voice.c") else { return };
    let server = Server::start(&program, &["listen", ANY]);
    let printed = output(&program, &["speak", &server.address, "50"]);
    assert!(printed.contains("frames over CCID 4"), "{printed}");
    let number = |text: &str, at: usize| -> u32 {
        text.split_whitespace().nth(at).and_then(|n| n.parse().ok()).expect("a number")
    };
    let sent = number(&printed, 1);
    let heard = server.finish();
    // Frames that were queued when the sender printed its count are sent after that.
    assert!((sent..=50).contains(&number(&heard, 1)), "{printed}{heard}");
}

#[test]
fn the_programs_of_the_guide_compile() {
    let Some(cc) = compiler("c") else { return };
    let page = std::fs::read_to_string(here("../../docs/guides/c.md")).expect("the guide");
    let programs: Vec<&str> = page.split("```c\n").skip(1).collect();
    assert_eq!(programs.len(), 2);
    let folder = tempfile::tempdir().expect("a folder");
    for program in programs {
        let source = folder.path().join("program.c");
        std::fs::write(&source, program.split("```").next().expect("an end")).expect("a file");
        let mut cc = Command::new(&cc);
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]);
        let output = cc.arg(here("include")).arg(&source).output().expect("the compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
