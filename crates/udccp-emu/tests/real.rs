//! Real traffic over emulated networks. If the machine does not permit it, these tests skip and
//! print why.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]
#![expect(clippy::print_stderr, reason = "a test that skips says so")]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time;

use udccp_base::Duration;
use udccp_emu::{Clock, EmuError, PORT, Testnet, Timing};
use udccp_lab::schema::{Experiment, Point};
use udccp_scenario::RunOptions;
use udccp_scenario::schema::Scenario;
use udccp_sim::{End, RunResult};

fn scenario(change: impl Fn(&mut Scenario)) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/small.toml");
    let experiment = Experiment::load(&file).unwrap();
    let part = experiment.part(None).unwrap();
    let mut scenario = part.scenario(&Point::new(), &[]).unwrap();
    change(&mut scenario);
    scenario
}

/// The hosts of a scenario, or `None` if this machine lacks the capacity.
fn testnet(scenario: &Scenario) -> Option<Testnet> {
    match Testnet::new(scenario) {
        Ok(testnet) => Some(testnet),
        Err(error) if error.is_of_machine() || matches!(error, EmuError::Host { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs the network while `programs` run.
fn run(testnet: &Testnet, programs: impl FnOnce(&Testnet, Clock) + Send) -> (RunResult, Timing) {
    let clock = Clock::in_future(Duration::from_millis(50));
    thread::scope(|scope| {
        scope.spawn(|| programs(testnet, clock));
        testnet.run(1, RunOptions::default(), clock, &mut || true).unwrap()
    })
}

/// A run that kept time. After five failed attempts, prints a message and returns `None`.
fn in_time(programs: impl Fn(&Testnet, Clock) + Send + Sync) -> Option<(RunResult, Timing)> {
    let scenario = scenario(|_| {});
    let mut fault = String::new();
    for _ in 0..5 {
        let (result, timing) = run(&testnet(&scenario)?, &programs);
        match timing.invalid_reason() {
            None => return Some((result, timing)),
            Some(this) => fault = this,
        }
    }
    eprintln!("skipped: this machine is too busy to measure: {fault}");
    None
}

fn address(testnet: &Testnet, flow: usize, end: End) -> (core::net::IpAddr, u16) {
    (testnet.address(flow, end), PORT)
}

#[test]
fn kernel_tcp_fills_the_bottleneck_and_no_more() {
    let Some((result, timing)) = in_time(|testnet, clock| {
        for flow in 0..2 {
            let to = address(testnet, flow, End::Receiver);
            let listener =
                testnet.on_host(flow, End::Receiver, move || TcpListener::bind(to)).unwrap();
            thread::spawn(move || read_all(&listener.accept().unwrap().0));
            let stream =
                testnet.on_host(flow, End::Sender, move || TcpStream::connect(to)).unwrap();
            thread::spawn(move || write_until(stream, clock));
        }
    }) else {
        return;
    };
    let rates: Vec<f64> = result.flows.iter().map(|f| f.measured.throughput().as_mbps()).collect();
    let sum: f64 = rates.iter().sum();
    assert!((8.0..10.01).contains(&sum), "{rates:?} of 10 Mbit/s, {timing:?}");
    assert!(result.system.forward.utilisation > 0.8, "{timing:?}");
    // A full queue of 50 packets takes 60 ms.
    let delay = result.flows[0].measured.delay.max().unwrap();
    assert!((Duration::from_millis(10)..Duration::from_millis(75)).contains(&delay), "{delay}");
    assert!(result.flows[0].reverse.delivered.packets > 100, "acknowledgements come back");
    assert_eq!((timing.unread, timing.refused), (0, 0));
}

fn read_all(mut stream: &TcpStream) -> io::Result<usize> {
    let (mut buffer, mut all) = ([0; 65_536], 0);
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(all),
            n => all += n,
        }
    }
}

fn write_until(mut stream: TcpStream, clock: Clock) {
    while clock.elapsed() < Duration::from_secs(3) {
        if stream.write_all(&[0; 16_384]).is_err() {
            return;
        }
    }
}

#[test]
fn datagrams_take_the_time_of_the_path_both_ways() {
    const DATAGRAMS: u8 = 30;
    let scenario = scenario(|s| s.time.measure.from = Duration::ZERO);
    let Some(testnet) = testnet(&scenario) else { return };
    let (mut least_seen, mut answered) = (time::Duration::MAX, 0);
    let (least_of, answered_of) = (&mut least_seen, &mut answered);
    let (result, timing) = run(&testnet, move |testnet, _| {
        let (from, to) = (address(testnet, 1, End::Sender), address(testnet, 1, End::Receiver));
        let echo = testnet.on_host(1, End::Receiver, move || UdpSocket::bind(to)).unwrap();
        let ask = testnet.on_host(1, End::Sender, move || UdpSocket::bind(from)).unwrap();
        ask.set_read_timeout(Some(time::Duration::from_secs(3))).unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 100];
            while let Ok((len, from)) = echo.recv_from(&mut buffer) {
                let _ = echo.send_to(&buffer[..len], from);
            }
        });
        // The network starts 50 ms from now.
        thread::sleep(time::Duration::from_millis(100));
        for i in 0..DATAGRAMS {
            let begun = time::Instant::now();
            ask.send_to(&[i; 72], to).unwrap();
            let mut answer = [0; 100];
            // The network may end before a busy machine has sent the last datagrams.
            let Ok((len, _)) = ask.recv_from(&mut answer) else { return };
            assert_eq!((len, answer[0]), (72, i));
            *least_of = begun.elapsed().min(*least_of);
            *answered_of += 1;
        }
    });
    // 20 ms of propagation; 100 B take 80 us on the bottleneck and 8 us on each access link.
    let way = Duration::from_micros(10_000 + 80 + 2 * 8);
    let least = time::Duration::from_nanos(2 * way.as_nanos());
    assert!(least_seen >= least, "{least_seen:?}, {timing:?}");
    assert!(answered > 0, "{timing:?}");
    let flow = &result.flows[1];
    for delivered in [&flow.forward, &flow.reverse].map(|way| way.delivered.packets) {
        assert!((answered..=u64::from(DATAGRAMS)).contains(&delivered), "{delivered}");
    }
    // In network time, which does not depend on the machine, the path takes exactly this long.
    let delays = [flow.measured.delay.mean(), flow.measured.delay.max()];
    assert_eq!(delays, [Some(way), Some(way)], "{timing:?}");
}

#[test]
fn run_ends_when_stopped() {
    let scenario = scenario(|_| {});
    let Some(testnet) = testnet(&scenario) else { return };
    let clock = Clock::in_future(Duration::ZERO);
    let mut asked = 0;
    let mut twice = || {
        asked += 1;
        asked < 3
    };
    let error = testnet.run(1, RunOptions::default(), clock, &mut twice).unwrap_err();
    assert!(matches!(error, EmuError::Stopped));
    assert_eq!(asked, 3, "it asks no more, and so has gone no further");
}

#[test]
fn hosts_have_one_interface_and_their_addresses_cannot_clash() {
    let scenario = scenario(|_| {});
    // Two networks with the same addresses can coexist: each host has its own namespace.
    let (Some(one), Some(other)) = (testnet(&scenario), testnet(&scenario)) else { return };
    for testnet in [&one, &other] {
        let at = address(testnet, 0, End::Sender);
        let devices = testnet
            .on_host(0, End::Sender, move || {
                UdpSocket::bind(at)?;
                std::fs::read_to_string("/proc/thread-self/net/dev")
            })
            .unwrap();
        let names: Vec<&str> =
            devices.lines().filter_map(|l| l.split_once(':')).map(|l| l.0.trim()).collect();
        let virtual_ones = ["lo", "udccp0"];
        let odd: Vec<_> = names.iter().filter(|n| n.starts_with("eth")).collect();
        assert!(virtual_ones.iter().all(|v| names.contains(v)) && odd.is_empty(), "{names:?}");
    }
    // Nothing of them is visible outside.
    let here = std::fs::read_to_string("/proc/self/net/dev").unwrap();
    assert!(!here.contains("udccp0"));
}

#[test]
fn unsupported_scenarios_are_reported_before_start() {
    let many = scenario(|s| s.flows = s.flows.iter().cloned().cycle().take(200).collect());
    let error = Testnet::new(&many).unwrap_err();
    assert_eq!(error.to_string(), "the scenario has 400 hosts; the emulator has room for 256");
    assert!(error.is_of_scenario() && error.advice().is_some());
    let fast = scenario(|s| s.topology.bottleneck.rate = udccp_base::DataRate::from_mbps(400_000));
    match Testnet::new(&fast) {
        Err(error @ EmuError::TooFast { wanted, able }) => {
            assert_eq!(wanted, 49_999_999);
            assert!(able < wanted && error.is_of_machine());
            assert!(error.advice().unwrap().contains("udccp sim"));
        }
        Err(error) => eprintln!("skipped: {error}"),
        Ok(_) => panic!("no machine moves 400 Gbit/s in packets of 1500 B"),
    }
}
