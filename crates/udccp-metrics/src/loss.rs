//! Loss of packets, and loss events.

use crate::undefined::{Measured, Undefined};

/// Packets lost, `sent - received` (Nor et al., "Performance Enhancement of DCCP TCP-like over Long
/// Delay Link Networks" (2012), equation (2)); zero if duplicates make more packets arrive than
/// were sent.
pub const fn packet_loss(sent: u64, received: u64) -> u64 {
    sent.saturating_sub(received)
}

/// Packets lost out of `sent`, in percent: `100 * (sent - delivered) / sent`.
///
/// Both counts cover the same packets; more delivered than sent (duplicates) counts as no loss.
///
/// # Errors
/// [`Undefined::NoSamples`] when nothing was sent.
pub fn loss_percent(sent: u64, delivered: u64) -> Measured {
    if sent == 0 {
        return Err(Undefined::NoSamples);
    }
    Ok(100.0 * packet_loss(sent, delivered) as f64 / sent as f64)
}

/// Packets lost, as a percentage of all packets that enter a link: `100 * lost / entries`.
///
/// `entries` counts each packet once for every link of its path. This is close to the lines of a
/// trace of all links, which lack the links after the one that drops a packet. It reproduces the
/// packet drop of Table I of Nor et al. (2012), whose definition (equation (2)) does not say which
/// packets are the reference: those of all flows, on all three links.
///
/// # Errors
/// [`Undefined::NoSamples`] when no packet entered a link.
pub fn loss_on_all_links_percent(lost: u64, entries: u64) -> Measured {
    if entries == 0 {
        return Err(Undefined::NoSamples);
    }
    Ok(100.0 * lost as f64 / entries as f64)
}

/// Counts the loss events among losses at these times (ascending, nanoseconds). A loss belongs to
/// the previous event if it is at most one round-trip time after that event's first loss (RFC 5348
/// section 5.2, RFC 5166 section 2.1.3).
pub fn loss_events(times_ns: &[u64], rtt_ns: u64) -> u64 {
    let mut events = 0;
    let mut begun: Option<u64> = None;
    for &at in times_ns {
        if begun.is_none_or(|first| at.saturating_sub(first) > rtt_ns) {
            begun = Some(at);
            events += 1;
        }
    }
    events
}

/// The loss event rate in percent: loss events for each packet sent (RFC 5166 section 2.1.3).
///
/// # Errors
/// [`Undefined::NoSamples`] when nothing was sent.
pub fn loss_event_percent(events: u64, sent: u64) -> Measured {
    if sent == 0 {
        return Err(Undefined::NoSamples);
    }
    Ok(100.0 * events as f64 / sent as f64)
}

/// The goodput ratio in percent: useful bytes delivered relative to all bytes sent into the network
/// (RFC 5166 section 2.4). Above 100 if more arrives than is sent in the time for which both count:
/// what was under way when it began, or copies that the network made.
///
/// # Errors
/// [`Undefined::NoSamples`] when nothing was sent.
pub fn goodput_ratio_percent(delivered_bytes: u64, sent_bytes: u64) -> Measured {
    if sent_bytes == 0 {
        return Err(Undefined::NoSamples);
    }
    Ok(100.0 * delivered_bytes as f64 / sent_bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_counts_packets() {
        assert_eq!(packet_loss(10, 7), 3);
        assert_eq!(loss_percent(200, 199), Ok(0.5));
        assert_eq!(loss_percent(10, 11), Ok(0.0));
        assert_eq!(loss_percent(0, 0), Err(Undefined::NoSamples));
    }

    #[test]
    fn loss_on_all_links_counts_a_packet_on_each_link() {
        // 20 lost of 255,099 packets, next to 25,520 of another flow, each on three links: ns-2
        // with the study's set-up, which has 0.0024 %.
        let percent = loss_on_all_links_percent(20, 3 * (255_099 + 25_520)).unwrap();
        assert!((percent - 0.0024).abs() < 0.000_03, "{percent}");
        assert_eq!(loss_on_all_links_percent(0, 0), Err(Undefined::NoSamples));
    }

    #[test]
    fn losses_of_one_round_trip_are_one_event() {
        // RTT 100 ms: 0, 40 and 100 form one event; 101 starts the next, which includes 201.
        let ms = |t: u64| t * 1_000_000;
        let times = [0, 40, 100, 101, 201, 300].map(ms);
        assert_eq!(loss_events(&times, ms(100)), 3);
        assert_eq!(loss_events(&[], 1), 0);
        assert_eq!(loss_event_percent(3, 600), Ok(0.5));
        assert_eq!(loss_event_percent(0, 0), Err(Undefined::NoSamples));
    }

    #[test]
    fn headers_and_losses_lower_the_goodput_ratio() {
        assert_eq!(goodput_ratio_percent(1460, 1500), Ok(100.0 * 1460.0 / 1500.0));
        assert_eq!(goodput_ratio_percent(0, 0), Err(Undefined::NoSamples));
        // A queue empties after the sender has nearly stopped.
        assert_eq!(goodput_ratio_percent(4380, 1500), Ok(292.0));
    }
}
