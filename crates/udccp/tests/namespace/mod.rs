//! Hosts in network namespaces of their own, for tests that need the right to make them.
//!
//! A test calls [`inside`] first: the test program is started again, for that test alone, in a new
//! network namespace (and a user namespace, where it is not root's). Whatever the test makes there
//! is gone with the process. Where the system does not allow it, the test says so and passes.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]
#![expect(clippy::disallowed_methods, reason = "a host is a thread")]

use std::fs;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use nix::sched::{CloneFlags, unshare};

const MARK: &str = "UDCCP_TEST_NAMESPACE";

/// Whether this process is the one in which test `name` is to run.
pub fn inside(name: &str) -> bool {
    if std::env::var_os(MARK).is_some() {
        run("ip", &["link", "set", "lo", "up"]);
        return true;
    }
    let Some(wrapper) = wrapper() else {
        eprintln!("skipped: {name}: this system lets us make no network namespace");
        return false;
    };
    if !has("ip") {
        eprintln!("skipped: {name}: no program `ip` (Debian package iproute2)");
        return false;
    }
    let exe = std::env::current_exe().expect("this program has a path");
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(exe)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .expect("the wrapper ran before");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    for line in text.lines().filter(|line| line.contains("skipped: ")) {
        eprintln!("{line}");
    }
    assert!(output.status.success(), "in its namespace:\n{text}");
    assert!(text.contains("1 passed"), "no test is called {name}:\n{text}");
    false
}

/// The command that runs another in a new network namespace.
fn wrapper() -> Option<Vec<&'static str>> {
    let ways = [vec!["unshare", "--net"], vec!["unshare", "--user", "--map-root-user", "--net"]];
    ways.into_iter().find(|way| {
        let mut probe = Command::new(way[0]);
        probe.args(&way[1..]).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    })
}

/// Whether a program is in the search path.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Says what is not tested, and why.
pub fn skip(what: &str) {
    eprintln!("skipped: {what}");
}

/// Runs a program; what it printed, and what it complained of.
pub fn output(program: &str, args: &[&str]) -> (String, String) {
    let output = Command::new(program).args(args).output().expect("the program is there");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Runs a program, which has to succeed.
fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().expect("the program is there");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {stderr}", args.join(" "));
}

type Job = Box<dyn FnOnce() + Send>;

/// A host: a thread with a network namespace of its own.
pub struct Host {
    jobs: mpsc::Sender<Job>,
    netns: String,
}

impl Host {
    /// A host with nothing but a loopback interface.
    pub fn new() -> Self {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (tell, hear) = mpsc::channel();
        thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("we are root in our user namespace");
            run("ip", &["link", "set", "lo", "up"]);
            // IPv6 addresses are good at once, and not after a second of asking around.
            for conf in ["all", "default"] {
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{conf}/accept_dad"), "0");
            }
            let thread = fs::read_link("/proc/thread-self").expect("/proc is there");
            tell.send(format!("/proc/{}/ns/net", thread.display())).expect("it waits");
            todo.into_iter().for_each(|job| job());
        });
        Self { jobs, netns: hear.recv().expect("the thread lives") }
    }

    /// Runs something on the host and waits for its end. Threads that it starts stay on the host.
    pub fn on<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        self.start(job).recv().expect("what ran on the host has panicked")
    }

    /// Starts something on the host; nothing else runs on its thread meanwhile.
    pub fn start<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> mpsc::Receiver<R> {
        let (tell, hear) = mpsc::channel();
        let job = move || {
            let _ = tell.send(job());
        };
        self.jobs.send(Box::new(job)).expect("the host lives");
        hear
    }

    /// Runs `ip` on the host, with words separated by blanks.
    pub fn ip(&self, args: &str) {
        let args = args.to_owned();
        self.on(move || run("ip", &args.split(' ').collect::<Vec<_>>()));
    }

    /// Sets a value under /proc/sys/net.
    pub fn sysctl(&self, name: &str, value: &'static str) {
        let file = format!("/proc/sys/net/{name}");
        self.on(move || fs::write(&file, value).unwrap_or_else(|e| panic!("{file}: {e}")));
    }

    /// Joins two hosts by a cable with these interfaces at its ends.
    pub fn join(&self, own: &str, other: &Self, others: &str) {
        self.ip(&format!("link add {own} type veth peer name {others} netns {}", other.netns));
        self.ip(&format!("link set {own} up"));
        other.ip(&format!("link set {others} up"));
    }
}

/// A client and a server with a router between them, over IPv4 and IPv6.
///
/// Client 10.1.0.1, fd01::1; router 10.1.0.9, fd01::9 and 10.2.0.9, fd02::9; server 10.2.0.1,
/// fd02::1.
pub struct Network {
    pub client: Host,
    pub router: Host,
    pub server: Host,
}

impl Network {
    pub fn new() -> Self {
        let (client, router, server) = (Host::new(), Host::new(), Host::new());
        for (host, net, device) in [(&client, 1, "left"), (&server, 2, "right")] {
            host.join("eth0", &router, device);
            for (at, own, gateway) in [
                (host, format!("10.{net}.0.1/24"), format!("10.{net}.0.9")),
                (host, format!("fd0{net}::1/64"), format!("fd0{net}::9")),
            ] {
                // Even where nobody asks around, an IPv6 address is a little while not good yet.
                let (mask, good) = if own.contains(':') { (64, " nodad") } else { (24, "") };
                at.ip(&format!("addr add {own} dev eth0{good}"));
                router.ip(&format!("addr add {gateway}/{mask} dev {device}{good}"));
                at.ip(&format!("route add default via {gateway}"));
            }
        }
        router.sysctl("ipv4/ip_forward", "1");
        router.sysctl("ipv6/conf/all/forwarding", "1");
        // Answers to all, not to some in a second.
        router.sysctl("ipv4/icmp_ratelimit", "0");
        router.sysctl("ipv6/icmp/ratelimit", "0");
        Self { client, router, server }
    }
}
