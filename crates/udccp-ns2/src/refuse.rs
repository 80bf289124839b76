//! What a scenario needs and ns-2 lacks, and where ns-2 differs.

use udccp_link::{Gather, LinkConfig, LossConfig, QueueConfig, QueueLimit, Variation};
use udccp_scenario::schema::{
    AckCounting, DccpOptions, Flow, GrowthAfterCut, Scenario, TcpOptions, Traffic,
};
use udccp_scenario::{Family, access_links, hop_configs};

use crate::error::Ns2Error;
use crate::flow::{Player, ccid2_threshold, delays_acks, player};

/// Checks that ns-2 supports everything that a scenario needs. It does not need ns-2 installed.
///
/// # Errors
/// [`Ns2Error::Scenario`] with everything that is missing, each with its key.
pub fn check_supported(scenario: &Scenario) -> Result<(), Ns2Error> {
    let mut gaps = Vec::new();
    if scenario.topology.hops().count() > 1 {
        gaps.push("topology.shape: this backend supports only dumbbells".to_owned());
    }
    if !scenario.changes.is_empty() {
        gaps.push("topology.change: links of ns-2 do not change".to_owned());
    }
    for hop in hop_configs(scenario) {
        link_gaps("topology.bottleneck", &hop.forward, &mut gaps);
        link_gaps("topology.reverse", &hop.reverse, &mut gaps);
    }
    for flow in &scenario.flows {
        for link in access_links(scenario, flow) {
            // A host's timing is not reproduced: see `notes`.
            let quiet =
                LinkConfig { variation: Variation::None, gather: Gather::default(), ..link };
            link_gaps("topology.access", &quiet, &mut gaps);
        }
        let own = flow_gaps(flow).into_iter();
        gaps.extend(own.map(|gap| format!("flow \"{}\": {gap}", flow.name)));
    }
    let mut seen: Vec<String> = Vec::new();
    for gap in gaps {
        if !seen.contains(&gap) {
            seen.push(gap);
        }
    }
    if seen.is_empty() { Ok(()) } else { Err(Ns2Error::Scenario(seen)) }
}

fn link_gaps(what: &str, link: &LinkConfig, gaps: &mut Vec<String>) {
    let queue_is_known = matches!(link.queue, QueueConfig::DropTail | QueueConfig::Red(_));
    let red_in_bytes =
        matches!(link.queue, QueueConfig::Red(_)) && matches!(link.limit, QueueLimit::Bytes(_));
    let keys = [
        ("queue: only \"drop-tail\" and \"red\"", !queue_is_known),
        ("limit: a RED queue is limited in packets", red_in_bytes),
        ("loss: no random loss", link.loss != LossConfig::None),
        ("trace: a link has one rate", link.trace.is_some()),
        ("jitter, delay_distribution: no varying delay", link.variation != Variation::None),
        ("reorder: packets stay in order", link.reorder.is_some() || link.free_order),
        ("duplicate: no copies", link.duplicate > 0.0),
        ("corrupt: no bit errors", link.corrupt > 0.0),
        ("mtu: packets of any size pass", link.mtu.is_some()),
        ("token_bucket: its links are transmitters", link.token_bucket.is_some()),
        ("delay_tick: delays end at any time", link.gather.delay_tick.is_some()),
        ("interrupt_moderation: no network cards", link.gather.interrupt_moderation.is_some()),
    ];
    gaps.extend(keys.iter().filter(|(_, asked)| *asked).map(|(gap, _)| format!("{what}.{gap}")));
}

fn flow_gaps(flow: &Flow) -> Vec<String> {
    let Some(player) = player(flow) else {
        return vec![format!("protocol: ns-2 has no {}", flow.protocol.name)];
    };
    let mut gaps = Vec::new();
    let is_udp = player == Player::Udp;
    let traffic_fits = match *flow.traffic {
        Traffic::Bulk => !is_udp,
        Traffic::ConstantRate { .. } => flow.protocol.family != Family::Tcp,
        _ => false,
    };
    if !traffic_fits {
        gaps.push(match flow.protocol.family {
            Family::Tcp => "traffic: TCP has \"bulk\" only",
            Family::Dccp => "traffic: DCCP has \"bulk\" and \"constant-rate\" only",
            Family::Udp => "traffic: UDP has \"constant-rate\" only",
        });
    }
    match flow.protocol.family {
        Family::Tcp => gaps.extend(tcp_gaps(&flow.tcp, player)),
        Family::Dccp => gaps.extend(dccp_gaps(&flow.dccp, player)),
        Family::Udp => {}
    }
    gaps.into_iter().map(str::to_owned).collect()
}

fn tcp_gaps(tcp: &TcpOptions, player: Player) -> Vec<&'static str> {
    // The way of counting that Sack1 has.
    let counts_alike = player == Player::Sack && tcp.ack_counting == Some(AckCounting::OnePerAck);
    let keys = [
        (
            "tcp.ack_counting: each congestion control counts its own way",
            tcp.ack_counting.is_some() && !counts_alike,
        ),
        (
            "tcp.initial_ssthresh: its first slow start ends at a loss",
            tcp.initial_ssthresh.is_some(),
        ),
        ("tcp.window_reduction: the window falls at once", tcp.window_reduction.is_some()),
        ("tcp.loss_detection: its TCPs have no other", tcp.loss_detection.is_some()),
        ("tcp.window_cut: only the cut of dccp/ccid2 can change", tcp.window_cut.is_some()),
    ];
    keys.into_iter().filter(|(_, asked)| *asked).map(|(gap, _)| gap).collect()
}

/// Options that a CCID ignores, because they are for another point of the grid, are no gap.
fn dccp_gaps(dccp: &DccpOptions, player: Player) -> Vec<&'static str> {
    let is_tfrc = player == Player::Ccid3;
    let keys = [
        ("dccp.profile: its CCID 2 is that of RFC 4341", !is_tfrc && dccp.profile.is_some()),
        ("dccp.ack_ratio: it adapts the Ack Ratio", !is_tfrc && dccp.ack_ratio.is_some()),
        (
            "dccp.growth_after_cut: its window goes on growing",
            !is_tfrc && dccp.growth_after_cut == Some(GrowthAfterCut::Pauses),
        ),
        ("dccp.max_window: nothing bounds its window", !is_tfrc && dccp.max_window.is_some()),
        (
            "dccp.ecn: its nonces come from the time of day, so that no two runs are equal",
            dccp.ecn == Some(true),
        ),
        (
            "dccp.history_discounting: it has no switch for it",
            is_tfrc && dccp.history_discounting.is_some(),
        ),
        ("dccp.timer_tick: its timers have no ticks", dccp.timer_tick.is_some()),
        ("dccp.timers: its hosts do not wait for timers", dccp.timers.is_some()),
        ("dccp.wakes_every: its hosts do not sleep", dccp.wakes_every.is_some()),
        ("dccp.send_buffer: its hosts have no sockets", dccp.send_buffer.is_some()),
        ("dccp.nat: no NATs", dccp.nat.is_some()),
        ("dccp.quick_start: no Quick-Start", dccp.quick_start.is_some()),
        ("dccp.invite: no DCCP-Listen (RFC 5596)", dccp.invite.is_some()),
    ];
    keys.into_iter().filter(|(_, asked)| *asked).map(|(gap, _)| gap).collect()
}

/// Where ns-2 differs from the scenario, each as a clause.
pub(crate) fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut note = |text: String| {
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    for flow in &scenario.flows {
        if access_links(scenario, flow).iter().any(|link| link.variation != Variation::None) {
            note("topology.access.jitter: hosts send without timing noise".to_owned());
        }
        if access_links(scenario, flow).iter().any(|link| link.gather != Gather::default()) {
            let note_of = "topology.access: hosts get packets when they arrive, without \
                           interrupt_moderation or delay_tick";
            note(note_of.to_owned());
        }
        match player(flow) {
            Some(Player::Ccid2) => {
                note("DCCP packets have 16 bytes of headers and no IP header".to_owned());
                if let Some(threshold) = ccid2_threshold(scenario, flow) {
                    note(format!(
                        "flow \"{}\": the first slow start ends at {threshold} packets, because an \
                         Ack Vector above 253 bytes aborts ns-2",
                        flow.name
                    ));
                }
            }
            Some(Player::Ccid3) => {
                note("DCCP packets have 16 bytes of headers and no IP header".to_owned());
            }
            Some(Player::Sack) if delays_acks(flow) && flow.tcp.ack_counting.is_none() => {
                note(format!(
                    "flow \"{}\": its window grows by acknowledgements, half as fast as that of \
                     the profile; tcp.ack_counting = \"one-per-ack\" does so everywhere",
                    flow.name
                ));
            }
            Some(Player::Linux(name @ ("bic" | "cubic"))) => note(format!(
                "flow \"{}\": the window is limited a quarter above what path and queue hold, \
                 because {name} of TCP-Linux storms after a slow start that overshoots",
                flow.name
            )),
            _ => {}
        }
    }
    notes
}
