//! Observations of a run: packet events, queue samples, reports of agents.

use serde::{Deserialize, Serialize};
use udccp_agent::AgentReport;
use udccp_base::Duration;
use udccp_link::LinkConfig;

/// The observations of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observations {
    /// Release of the kernel.
    pub release: String,
    /// The report of each agent, in the order of the plan.
    pub agents: Vec<AgentReport>,
    /// Processor time of each agent, in percent of the run; empty in a guest, where time stands
    /// still.
    #[serde(default)]
    pub busy_percent: Vec<f64>,
    /// Packets that the kernel dropped between two devices because they came faster than it
    /// processed them.
    #[serde(default)]
    pub backlog_drops: u64,
    /// Packets may overtake each other anywhere, because several processors forward them.
    #[serde(default)]
    pub(crate) overtakes: bool,
    /// The samples of each watched queue.
    pub(crate) looks: Vec<Vec<QueueSample>>,
    /// Congestion controls of the kernel's TCP.
    pub congestion: String,
    /// Whether the kernel has DCCP sockets.
    pub has_dccp: bool,
}

/// A sample of a link's queue. Counters count from the creation of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueueSample {
    /// When it was due, since time zero.
    #[serde(rename = "t")]
    pub(crate) at_ns: u64,
    /// When it was taken, which on a real clock is later.
    #[serde(rename = "r", default)]
    pub(crate) really_ns: u64,
    /// IP bytes sent.
    #[serde(rename = "b")]
    pub(crate) sent_bytes: u64,
    /// Packets sent.
    #[serde(rename = "p")]
    pub(crate) sent_packets: u64,
    /// Packets in the queue.
    #[serde(rename = "w")]
    pub(crate) waiting: u64,
    /// IP bytes in the queue.
    #[serde(rename = "wb")]
    pub(crate) waiting_bytes: u64,
    /// Packets dropped by netem: random losses and drops of the queue below.
    #[serde(rename = "ld")]
    pub(crate) line_drops: Option<u64>,
    /// Packets dropped by the token bucket, mostly drops of the queue below.
    #[serde(rename = "bd")]
    pub(crate) bucket_drops: u64,
    /// Packets dropped by the queue itself.
    #[serde(rename = "qd")]
    pub(crate) queue_drops: u64,
}

/// Minimum length of the periods over which service is compared.
const STRETCH: Duration = Duration::from_secs(1);

/// Why the rates of some agents do not reflect the network: the kernel of their hosts ran out of
/// memory for TCP, which slows down connections on any path, or their sockets had no room for
/// packets that had arrived.
pub fn short_of_buffers<'a>(
    agents: impl Iterator<Item = &'a AgentReport> + Clone,
) -> Option<String> {
    let times: u64 = agents.clone().map(|agent| agent.memory_pressures).sum();
    if times > 0 {
        let times = if times == 1 { "once".into() } else { format!("{times} times") };
        return Some(format!("memory for TCP ran short {times} (net.ipv4.tcp_mem)"));
    }
    let drops: u64 = agents.map(|agent| agent.buffer_drops).sum();
    (drops > 0).then(|| {
        let packets = if drops == 1 { "1 packet".into() } else { format!("{drops} packets") };
        format!("sockets of hosts had no room for {packets} that had arrived")
    })
}

impl Observations {
    /// Why the result does not reflect the network, according to the kernel's counters: it lost
    /// packets between its devices, or was short of memory or of socket buffers.
    pub fn invalid_reason(&self) -> Option<String> {
        let lost = self.backlog_drops;
        let lost =
            (lost > 0).then(|| format!("the kernel lost {lost} packets between its devices"));
        lost.or_else(|| short_of_buffers(self.agents.iter()))
    }

    /// The largest deviation of the links' service from their rates, in percent, over periods of a
    /// second in which every sample found packets queued. `None` if there is no such period, or if
    /// a rate changes.
    pub fn rate_error_percent(&self, links: &[LinkConfig]) -> Option<f64> {
        let steady = links.iter().zip(&self.looks).filter(|(link, _)| link.changes.is_empty());
        let errors = steady.filter_map(|(link, looks)| {
            let rate = link.rate?.bits_per_sec() as f64;
            stretches(looks).map(|got| 100.0 * (got / rate - 1.0).abs()).reduce(f64::max)
        });
        errors.reduce(f64::max)
    }
}

/// The service in bit/s of each period in which packets were always queued.
fn stretches(looks: &[QueueSample]) -> impl Iterator<Item = f64> {
    let mut begin: Option<QueueSample> = None;
    looks.iter().filter_map(move |look| {
        if look.waiting == 0 {
            begin = None;
            return None;
        }
        let from = *begin.get_or_insert(*look);
        let span_ns = look.really_ns.saturating_sub(from.really_ns);
        if span_ns < STRETCH.as_nanos() {
            return None;
        }
        begin = Some(*look);
        Some((look.sent_bytes - from.sent_bytes) as f64 * 8e9 / span_ns as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use udccp_base::DataRate;

    #[test]
    fn memory_or_buffer_shortage_invalidates_the_run() {
        let agent = |more: &str| -> AgentReport {
            let usual = r#""flow":"a","role":"sender","samples":[]"#;
            let text = format!(r#"{{{usual},"app_bytes_out":0,"app_bytes_in":0{more}}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let observations = |agents| Observations { agents, ..Observations::default() };
        let reason = |more| observations(vec![agent(""), agent(more)]).invalid_reason();
        assert_eq!(reason(""), None);
        let short = "memory for TCP ran short 2 times (net.ipv4.tcp_mem)";
        assert_eq!(reason(r#","memory_pressures":2"#).unwrap(), short);
        let dropped = reason(r#","buffer_drops":1"#).unwrap();
        assert_eq!(dropped, "sockets of hosts had no room for 1 packet that had arrived");
        let lost = Observations { backlog_drops: 3, ..observations(vec![agent("")]) };
        assert_eq!(lost.invalid_reason().unwrap(), "the kernel lost 3 packets between its devices");
    }

    #[test]
    fn service_is_compared_only_while_packets_wait() {
        let link = LinkConfig { rate: Some(DataRate::from_mbps(8)), ..LinkConfig::default() };
        let look = |i: u64, sent_bytes, waiting| QueueSample {
            really_ns: i * 100_000_000,
            sent_bytes,
            waiting,
            ..QueueSample::default()
        };
        let observations = |per_look: u64, waiting: fn(u64) -> u64| Observations {
            looks: vec![(0..40).map(|i| look(i, i * per_look, waiting(i))).collect()],
            ..Observations::default()
        };
        let links = [link];
        let error = |observations: Observations| observations.rate_error_percent(&links);
        assert_eq!(error(observations(100_000, |_| 5)), Some(0.0));
        let slow = error(observations(98_000, |_| 5)).unwrap();
        assert!((slow - 2.0).abs() < 1e-9, "{slow}");
        // Half the rate, but the queue is empty now and then: there was no more to send.
        assert_eq!(error(observations(50_000, |i| i % 8)), None);
    }
}
