//! Creates a plan's cables, addresses and routes by netlink.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

use udccp_netns::{CableEnd, Namespace, Tables, TcpMetrics, interface};

use crate::error::Error;
use crate::plan::{IpStep, Plan, RouteMetrics, Wire, WireEnd};

/// Connects the namespaces, working from this thread's namespace.
pub(super) fn join(plan: &Plan, spaces: &[Namespace]) -> Result<(), Error> {
    let space = |name: &str| {
        let at = plan.namespaces.iter().position(|space| space.name == name)?;
        spaces.get(at).map(AsFd::as_fd)
    };
    let end = |end: &'_ WireEnd| CableEnd {
        namespace: space(&end.namespace),
        hardware: end.hardware,
        mtu: end.mtu,
        gso_max_segments: Some(1),
        ..CableEnd::default()
    };
    let tables = Tables::open()?;
    for wire in &plan.wires {
        let made = match wire {
            Wire::Cable(one, other) => tables.add_cable(
                &CableEnd { name: &one.name, ..end(one) },
                &CableEnd { name: &other.name, ..end(other) },
            ),
            Wire::Ifb { name, namespace } => {
                let namespace = space(namespace);
                tables.add_ifb(&CableEnd { name, namespace, ..CableEnd::default() })
            }
        };
        made.map_err(|e| Error::new(format!("ip {wire}: {e}")))?;
    }
    Ok(())
}

/// Executes the steps of the namespace that this thread is in.
pub(super) fn steps(all: &[IpStep]) -> Result<(), Error> {
    let tables = Tables::open()?;
    for step in all {
        take(&tables, step).map_err(|e| Error::new(format!("ip {step}: {e}")))?;
    }
    Ok(())
}

fn take(tables: &Tables, step: &IpStep) -> io::Result<()> {
    match step {
        IpStep::Up { device, arp: true } => tables.link_up(interface(device)?, Vec::new()),
        IpStep::Up { device, arp: false } => tables.link_up_without_arp(interface(device)?),
        IpStep::Address { device, address } => tables.add_address(interface(device)?, *address),
        IpStep::Route { to, device, metrics } => {
            let all = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
            let network = to.map_or(all, |address| (address, 32));
            tables.add_route(network, interface(device)?, tcp_metrics(*metrics))
        }
    }
}

fn tcp_metrics(metrics: RouteMetrics) -> TcpMetrics {
    let RouteMetrics { least_rto_ms, initial_window, max_window } = metrics;
    TcpMetrics { least_rto_ms, initial_window, max_window, quick_ack: false }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn ip(args: &str) -> io::Result<String> {
        let done = Command::new("ip").args(args.split(' ')).output()?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() { Ok(text) } else { Err(io::Error::other(error)) }
    }

    fn end(name: &str) -> WireEnd {
        let (name, namespace) = (name.to_owned(), "here".to_owned());
        WireEnd { name, namespace, hardware: Some([2, 0, 0, 0, 0, 9]), mtu: Some(1400) }
    }

    fn all_steps() -> Vec<IpStep> {
        let [a, b]: [IpAddr; 2] = [[10, 1, 0, 1], [10, 2, 0, 7]].map(IpAddr::from);
        let metrics =
            RouteMetrics { least_rto_ms: Some(300), initial_window: Some(3), max_window: Some(64) };
        let device = || "one".to_owned();
        vec![
            IpStep::up("lo", true),
            IpStep::up("one", false),
            IpStep::up("other", false),
            IpStep::Address { device: device(), address: a },
            IpStep::Route { to: Some(b), device: device(), metrics: RouteMetrics::default() },
            IpStep::Route { to: None, device: device(), metrics },
        ]
    }

    /// All of a namespace's configuration that `ip` shows, once both ends of the cable are up. The
    /// kernel does that a while after it was asked to.
    #[expect(clippy::disallowed_methods, reason = "the kernel does it in its own time")]
    fn shown() -> io::Result<String> {
        while ip("-o link")?.matches(" state UP ").count() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let all = ["-d addr", "route show table all", "-d link"].map(ip);
        let all = all.into_iter().collect::<io::Result<Vec<_>>>()?.join("\n");
        // Ignore which program created a route.
        Ok(all.replace(" proto static", ""))
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn netlink_steps_equal_the_ip_commands() {
        // IPv6 assigns addresses by itself, at unpredictable times.
        let no_v6 = || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        let by_words = Namespace::with(move || {
            no_v6()?;
            let wire = Wire::Cable(end("one"), end("other")).to_string();
            ip(&wire.replace(" netns here", ""))?;
            all_steps().iter().try_for_each(|step| ip(&step.to_string()).map(drop))
        });
        let by_netlink = Namespace::with(move || {
            no_v6()?;
            let space = Namespace::current()?;
            let mut plan = Plan::trial();
            plan.namespaces.truncate(1);
            plan.namespaces[0].name = "here".to_owned();
            plan.wires = vec![Wire::Cable(end("one"), end("other"))];
            join(&plan, &[space]).and_then(|()| steps(&all_steps())).map_err(io::Error::other)
        });
        match (by_words, by_netlink) {
            (Err(e), _) if e.kind() != io::ErrorKind::Other => eprintln!("skipped: {e}"),
            (words, netlink) => {
                let [words, netlink] = [words, netlink].map(|space| space.unwrap().run(shown));
                assert_eq!(netlink.unwrap(), words.unwrap());
            }
        }
    }
}
