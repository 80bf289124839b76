//! Hosts in network namespaces, for tests that may create them.
//!
//! A test calls [`inside`] first: it starts the test program again, for that test alone, in a new
//! network namespace (and a user namespace, unless it runs as root). Everything that the test
//! creates there disappears with the process. If the system does not allow it, the test prints a
//! note and passes.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::fs;
use std::net::{IpAddr, SocketAddrV6};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use udccp_netns::{LOOPBACK, Namespace, RoutedPair, Tables};

const MARK: &str = "UDCCP_TEST_NAMESPACE";

/// Whether this process is the one in which test `name` has to run.
pub fn inside(name: &str) -> bool {
    if std::env::var_os(MARK).is_some() {
        let up = Tables::open().and_then(|tables| tables.link_up(LOOPBACK, Vec::new()));
        up.expect("a namespace of our own");
        return true;
    }
    let Some(wrapper) = wrapper() else {
        eprintln!("skipped: {name}: this system lets us make no network namespace");
        return false;
    };
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

/// Prints what is not tested, and why.
pub fn skip(what: &str) {
    eprintln!("skipped: {what}");
}

/// Runs a program. Returns its standard output and standard error.
pub fn output(program: &str, args: &[&str]) -> (String, String) {
    let output = Command::new(program).args(args).output().expect("the program is there");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A host: a namespace of its own.
pub struct Host(Namespace);

impl Host {
    /// A host with only a loopback interface.
    pub fn new() -> Self {
        Self(Namespace::host().expect("we are root in our user namespace"))
    }

    /// Runs a function on the host and waits for its end. Threads that it starts stay on the host.
    pub fn on<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        let job = self.0.spawn(job).expect("a thread");
        job.join().expect("what ran on the host has panicked")
    }

    /// Starts a function on the host.
    pub fn start<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> mpsc::Receiver<R> {
        let (tell, hear) = mpsc::channel();
        let job = move || {
            let _ = tell.send(job());
        };
        self.0.spawn(job).expect("a thread");
        hear
    }

    /// Sets the MTU of an interface.
    pub fn set_mtu(&self, interface: &'static str, mtu: u32) {
        let set = move || Tables::open()?.set_mtu(udccp_netns::interface(interface)?, mtu);
        self.0.run(set).expect("an interface");
    }

    /// Connects it to another host by a cable with interfaces of these names.
    pub fn join(&self, own: &str, other: &Self, others: &str) {
        self.0.join(own, &other.0, others).expect("a cable");
    }

    /// Adds an address to an interface.
    pub fn add_address(&self, interface: &'static str, address: IpAddr) {
        let add = move || Tables::open()?.add_address(udccp_netns::interface(interface)?, address);
        self.0.run(add).expect("an interface");
    }

    /// The link-local address of an interface, in the scope of that interface.
    pub fn link_local(&self, interface: &'static str) -> SocketAddrV6 {
        self.on(move || {
            let scope = udccp_netns::interface(interface).expect("an interface");
            loop {
                let list = fs::read_to_string("/proc/thread-self/net/if_inet6").expect("IPv6");
                let is_it = |line: &&str| line.starts_with("fe80") && line.ends_with(interface);
                if let Some(line) = list.lines().find(is_it) {
                    let ip = u128::from_str_radix(&line[..32], 16).expect("an address");
                    return SocketAddrV6::new(ip.into(), 0, 0, scope);
                }
                // The kernel assigns it once both ends are up.
                std::thread::park_timeout(Duration::from_millis(10));
            }
        })
    }

    /// Sets a value under /proc/sys/net.
    fn sysctl(&self, name: &str, value: &'static str) {
        let file = format!("/proc/sys/net/{name}");
        self.on(move || fs::write(&file, value).unwrap_or_else(|e| panic!("{file}: {e}")));
    }
}

/// A client and a server with a router between them: [`RoutedPair`].
pub struct Network {
    pub client: Host,
    pub router: Host,
    pub server: Host,
}

impl Network {
    pub fn new() -> Self {
        let pair = RoutedPair::new().expect("we are root in our user namespace");
        let [client, router, server] = [pair.client, pair.router, pair.server].map(Host);
        // Send every ICMP answer, without a rate limit.
        router.sysctl("ipv4/icmp_ratelimit", "0");
        router.sysctl("ipv6/icmp/ratelimit", "0");
        Self { client, router, server }
    }
}
