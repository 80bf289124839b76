//! Connections whose sequence numbers wrap around soon.

use udccp_base::{Datagram, Duration, Instant, Machine, Seed};
use udccp_proto::{ConnectOptions, ConnectionConfig, Endpoint, EndpointConfig};
use udccp_wire::PacketView;

use super::pair::{CLIENT, PORT, listen_config};

/// Where sequence numbers begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    Anywhere,
    /// Short numbers, close to 2^24.
    Wrap24,
    /// Close to 2^48.
    Wrap48,
}

pub fn seq(d: &Datagram) -> u64 {
    PacketView::new(&d.header, d.transport_len()).unwrap().header().seq.value()
}

/// The initial sequence number of a host with this secret, when its clock shows this time.
fn initial(host: usize, secret: [u8; 32], at: Instant, options: &ConnectOptions) -> u64 {
    let mut end = Endpoint::new(EndpointConfig::new(secret));
    end.connect(at, options.clone()).unwrap();
    let request = end.poll_transmit(at).unwrap();
    if host == CLIENT {
        return seq(&request);
    }
    let mut end = Endpoint::new(EndpointConfig::new(secret));
    let config = ConnectionConfig::clone(&options.config);
    end.listen(None, PORT, listen_config(config)).unwrap();
    end.handle_datagram(at, request);
    seq(&end.poll_transmit(at).unwrap())
}

/// The secret of a host, and what its clock has to show at the start of a connection, whose
/// sequence numbers then wrap around after about `before` packets: a clock advances each half of
/// the initial number, so a time is found at which both are large.
pub fn secret_and_clock(
    host: usize,
    seed: u64,
    numbers: Numbers,
    before: u64,
    options: &ConnectOptions,
) -> ([u8; 32], Instant) {
    const HALF: u64 = 1 << 24;
    const TICKS: [u64; 2] = [28_610, 1_000_000_000];
    for n in 0.. {
        let secret = Seed(seed * 1_000_000 + n).stream("secret").bytes32();
        let begin = Instant::from_nanos(TICKS[1] * 1000);
        let high = match numbers {
            Numbers::Wrap48 => HALF - 1 - (initial(host, secret, begin, options) >> 24),
            Numbers::Wrap24 | Numbers::Anywhere => 0,
        };
        let begin = begin + Duration::from_nanos(high * TICKS[1]);
        let low = (HALF - before).wrapping_sub(initial(host, secret, begin, options)) % HALF;
        let at = begin + Duration::from_nanos(low * TICKS[0]);
        let found = initial(host, secret, at, options);
        let wraps_at = if numbers == Numbers::Wrap48 { HALF * HALF } else { HALF };
        if numbers == Numbers::Anywhere || wraps_at - found % wraps_at <= before + 1 {
            return (secret, at);
        }
    }
    unreachable!()
}
