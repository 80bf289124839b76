//! `udccp emu`: real traffic, errors where it is impossible, and that nothing is left behind. On
//! machines that cannot emulate, those tests skip with a message.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "processes end in real time")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "seeds and skips are told")]

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use common::{TWO_FLOWS, fails, udccp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use udccp_base::Seed;

/// A folder with the scenario, and a name that identifies all processes of a test.
struct Place {
    folder: tempfile::TempDir,
    mark: String,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("small.toml"), TWO_FLOWS).unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder, mark: format!("UDCCP_TEST_MARK={name}-{}", std::process::id()) }
    }

    fn scenario(&self) -> PathBuf {
        self.folder.path().join("small.toml")
    }

    fn tmp(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_udccp"));
        let (name, value) = self.mark.split_once('=').unwrap();
        command.arg("emu").arg(self.scenario()).env(name, value).env("TMPDIR", self.tmp());
        command.stdin(Stdio::null());
        command
    }

    fn start(&self) -> Child {
        self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Running processes that the test has started.
    fn processes(&self) -> Vec<PathBuf> {
        let has_mark = |folder: &PathBuf| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|b| *b == 0).any(|entry| entry == self.mark.as_bytes())
        };
        let all = fs::read_dir("/proc").unwrap().filter_map(|e| Some(e.ok()?.path()));
        all.filter(has_mark).collect()
    }

    /// Checks that nothing of the program is left: no process (and so no namespace and no device,
    /// which only processes hold), no named namespace, no device here, no file.
    fn check_nothing_left(&self, when: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.processes().is_empty() {
            assert!(Instant::now() < deadline, "{when}: left: {:?}", self.processes());
            park_timeout(Duration::from_millis(5));
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains("udccp"), "{when}: {mounts}");
        let named = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let named: Vec<String> =
            named.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        assert!(!named.iter().any(|n| n.contains("udccp")), "{when}: {named:?}");
        let devices = fs::read_to_string("/proc/self/net/dev").unwrap();
        assert!(!devices.contains("udccp"), "{when}: {devices}");
        let files: Vec<_> = fs::read_dir(self.tmp()).unwrap().flatten().collect();
        assert!(files.is_empty(), "{when}: {files:?}");
    }
}

/// Runs the scenario to its end; `None` if this machine lacks the capacity.
fn run(place: &Place, args: &[&str]) -> Option<serde_json::Value> {
    let output = place.command().arg("--json").args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(10) => {
            eprintln!("skipped: {text}");
            None
        }
        // Without root's large buffers, a busy machine may fail to record all packets.
        Some(9) if text.contains("were not recorded") => {
            eprintln!("skipped: {text}");
            None
        }
        // A busy machine may not keep time, but there is a result anyway.
        Some(0 | 9) => Some(serde_json::from_slice(&output.stdout).unwrap()),
        _ => panic!("{text}"),
    }
}

#[test]
fn both_flows_carry_data_and_the_result_reports_its_accuracy() {
    let place = Place::new("both");
    let out = place.folder.path().join("out");
    let Some(record) = run(&place, &["--pcap", out.to_str().unwrap()]) else { return };
    all_carry(&record);
    for flow in record["flows"].as_array().unwrap() {
        let windows = flow["series"]["cwnd_packets"].as_array().unwrap();
        assert!(windows.len() == 4 && windows[3].as_f64().unwrap() > 0.5, "{flow}");
    }
    let timing = &record["timing"];
    assert!(timing["packets"].as_u64().unwrap() > 100, "{timing}");
    assert!(timing["delay_p50_ms"].as_f64().unwrap() > 0.0, "{timing}");
    assert!(record["links"][0]["series"]["queue_packets"].as_array().unwrap().len() == 4);
    for point in ["first-sender", "second-receiver", "bottleneck"] {
        assert!(out.join(format!("{point}.pcap")).metadata().unwrap().len() > 1_000);
    }
    place.check_nothing_left("after a run");
}

/// Checks that all flows carry data, and that they fill the path if the machine kept time and its
/// agents had priority (as they do for root).
fn all_carry(record: &serde_json::Value) {
    let flows = record["flows"].as_array().unwrap();
    let sum: f64 = flows.iter().map(|f| f["throughput_mbps"].as_f64().unwrap()).sum();
    let is_first = record["timing"]["valid"] == true && nix::unistd::geteuid().is_root();
    let least = if is_first { 5.0 } else { 0.0 };
    assert!((least..10.1).contains(&sum), "{record}");
    for flow in flows {
        assert!(flow["packets_delivered"].as_u64().unwrap() > 10, "{flow}");
    }
}

/// The packets of a capture, starting with their IP headers.
fn packets(file: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(file).unwrap();
    let (mut rest, mut packets) = (&bytes[24..], Vec::new());
    while let Some((head, tail)) = rest.split_first_chunk::<16>() {
        let kept = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        packets.push(tail[..kept].to_vec());
        rest = &tail[kept..];
    }
    packets
}

#[test]
fn dccp_over_raw_ip_is_carried_on_request() {
    let place = Place::new("raw");
    let out = place.folder.path().join("out");
    let args = ["--dccp", "raw", "--snaplen", "64", "--pcap", out.to_str().unwrap()];
    let Some(record) = run(&place, &args) else { return };
    all_carry(&record);
    // Only DCCP: the hosts' kernels do not interfere (ICMP, "protocol unreachable").
    let all = packets(&out.join("first-sender.pcap"));
    assert!(all.len() > 10, "{}", all.len());
    assert!(all.iter().all(|packet| packet[9] == 33), "IP protocol 33");
}

#[test]
fn hosts_with_ipv6_carry_all_protocols() {
    let place = Place::new("ipv6");
    for (carrier, number) in [("udp", 17), ("raw", 33)] {
        let out = place.folder.path().join(carrier);
        let args = ["--ipv6", "--dccp", carrier, "--snaplen", "64", "--pcap"];
        let Some(record) = run(&place, &[&args[..], &[out.to_str().unwrap()]].concat()) else {
            return;
        };
        all_carry(&record);
        for (flow, number) in [("first", number), ("second", 6)] {
            // Only the flow: no neighbour or router discovery.
            let all = packets(&out.join(format!("{flow}-sender.pcap")));
            assert!(all.len() > 10, "{}", all.len());
            assert!(all.iter().all(|p| p[0] >> 4 == 6 && p[6] == number), "{flow}");
        }
    }
    let scenario = place.scenario();
    let short = [scenario.to_str().unwrap(), "--ipv6", "--set", "flow.second.packet=576 B"];
    let message = ["\"second\" has packets of at most 576 B", "at least 1280 B", "hint: "];
    fails(&[&["emu"], &short[..]].concat(), 4, &message);
    place.check_nothing_left("after runs and an error");
}

/// A path with only a rate and a queue, provided by this machine's kernel.
const BY_KERNEL: [&str; 6] = [
    "--path",
    "netem",
    "--set",
    "topology.access.delay=0 ms",
    "--set",
    "topology.bottleneck.rtt=0 ms",
];

#[test]
fn kernel_path_carries_both_flows() {
    let place = Place::new("netem");
    for carrier in ["udp", "raw"] {
        let args = [&BY_KERNEL[..], &["--dccp", carrier]].concat();
        let Some(record) = run(&place, &args) else { return };
        all_carry(&record);
        assert_eq!(record["backend"], "emu-netem");
        assert!(record["timing"]["delay_p50_ms"].is_null(), "{record}");
        place.check_nothing_left("after a run");
    }
}

#[test]
fn missing_netem_is_reported_before_start() {
    let place = Place::new("lacks-netem");
    let output = place.command().args(["--path", "netem"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    match output.status.code() {
        // The kernel has netem; the run kept time or did not.
        Some(0 | 9) => {}
        Some(10) if text.contains("netem") => {
            assert!(text.contains("has no netem (for: delay, loss"), "{text}");
            assert!(text.contains("hint: sudo modprobe -a sch_netem"), "{text}");
        }
        Some(10) => eprintln!("skipped: {text}"),
        _ => panic!("{text}"),
    }
    place.check_nothing_left("after an error");
    let scenario = place.scenario();
    let scenario = scenario.to_str().unwrap();
    let message = ["cannot build the path", "a link with an MTU", "hint: leave out --path"];
    let mtu = "topology.bottleneck.mtu=576 B";
    fails(&["emu", scenario, "--path", "netem", "--set", mtu], 4, &message);
    fails(&["emu", scenario, "--path", "netem", "--ipv6"], 2, &["--ipv6", "hint: "]);
}

#[test]
fn sigkill_leaves_no_kernel_path_behind() {
    let place = Place::new("kill-netem");
    if run(&place, &BY_KERNEL).is_none() {
        return;
    }
    for after_ms in [5, 60, 300, 1_000] {
        let mut command = place.command();
        command.args(BY_KERNEL).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        park_timeout(Duration::from_millis(after_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        place.check_nothing_left(&format!("killed after {after_ms} ms"));
    }
}

#[test]
fn sigkill_at_random_times_leaves_nothing_behind() {
    let place = Place::new("kill");
    if run(&place, &[]).is_none() {
        return;
    }
    let seed = std::env::var("UDCCP_TEST_SEED").ok().and_then(|s| s.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("UDCCP_TEST_SEED={seed}");
    let mut moments = Seed(seed).stream("kill -9");
    for _ in 0..10 {
        let mut child = place.start();
        let moment = Duration::from_millis(moments.below(2_500));
        park_timeout(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        place.check_nothing_left(&format!("killed after {moment:?}"));
    }
    run(&place, &[]).expect("it ran before");
    place.check_nothing_left("after the next run");
}

#[test]
fn ctrl_c_ends_it_and_leaves_nothing() {
    let place = Place::new("ctrl-c");
    if run(&place, &[]).is_none() {
        return;
    }
    for (signal, after_ms) in [(Signal::SIGINT, 900), (Signal::SIGTERM, 300)] {
        let mut child = place.start();
        // The emulation is running once it has started agents.
        let deadline = Instant::now() + Duration::from_secs(60);
        while place.processes().len() < 2 && Instant::now() < deadline {
            park_timeout(Duration::from_millis(5));
        }
        park_timeout(Duration::from_millis(after_ms));
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        place.check_nothing_left(signal.as_str());
    }
}

#[test]
fn missing_machine_features_are_reported_with_advice() {
    let place = Place::new("lacks");
    let scenario = place.scenario();
    let emu = |set: &str, message: &[&str]| {
        let args = ["emu", scenario.to_str().unwrap(), "--set", set];
        let output = udccp(&args).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(10), "{text}");
        // Without any privileges, the error is about those instead.
        if !text.contains("namespace") && !text.contains("/dev/net/tun") {
            assert!(message.iter().all(|part| text.contains(part)), "{text}");
        }
        assert!(text.contains("hint: "), "{text}");
    };
    let lacks = ["no congestion control compound (for tcp/compound)", "available: ", "reno"];
    emu("flow.second.protocol=tcp/compound", &lacks);
    let fast = "topology.bottleneck.rate=400 Gbit/s";
    emu(fast, &["packets a second over its links; this machine can move about", "udccp sim"]);
    place.check_nothing_left("after errors");
}

#[test]
fn invalid_file_is_reported_first() {
    let place = Place::new("faulty");
    fs::write(place.scenario(), TWO_FLOWS.replace("traffic = \"bulk\"", "trafic = \"bulk\""))
        .unwrap();
    fails(&["emu", place.scenario().to_str().unwrap()], 4, &["trafic", "small.toml"]);
    fails(&["emu", "no-such-file.toml"], 4, &["no-such-file.toml"]);
}

#[test]
fn missing_privileges_are_reported_with_advice() {
    const NOBODY: u32 = 65_534;
    let place = Place::new("nobody");
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can become somebody without rights");
        return;
    }
    // A copy, since others may not read a temporary folder of root.
    let program = Path::new(env!("CARGO_BIN_EXE_udccp"));
    let copy = tempfile::Builder::new().prefix("udccp").tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(copy.path(), open).unwrap();
    let (own, scenario) = (copy.path().join("udccp"), copy.path().join("small.toml"));
    fs::copy(program, &own).unwrap();
    fs::write(&scenario, TWO_FLOWS).unwrap();
    let mut command = Command::new(own);
    let output = command.arg("emu").arg(scenario).uid(NOBODY).gid(NOBODY).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(10) => {
            assert!(text.contains("/dev/net/tun") || text.contains("namespace"), "{text}");
            assert!(text.contains("hint: run as root"), "{text}");
        }
        // A user namespace, and a device that everyone may open.
        Some(0 | 9) => {}
        _ => panic!("{text}"),
    }
    place.check_nothing_left("after an error");
}
