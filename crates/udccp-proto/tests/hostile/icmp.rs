//! ICMP messages forged by an attacker who sees no packet of the connection (RFC 4340 section
//! 14.1).

use udccp_base::{Datagram, Duration, Message, Payload, Seed};
use udccp_proto::{ConnectOptions, ConnectionConfig, ConnectionId, PathReport, PmtuProbing};

use crate::common::pair::PORT;
use crate::common::{CLIENT, Net, SERVER, connect_options, listen_config};

/// A client that sends to a server that reads, and one of its packets, for addresses and ports.
struct SendingClient {
    net: Net,
    id: ConnectionId,
    like: Datagram,
}

fn config(probing: bool) -> ConnectionConfig {
    let pmtu_probing = probing.then(PmtuProbing::default);
    ConnectionConfig { pmtu_probing, ..ConnectionConfig::default() }
}

fn sending_client(is_ipv6: bool, config: ConnectionConfig) -> SendingClient {
    let mut net = Net::new(14);
    net.ends[SERVER].listen(None, PORT, listen_config(ConnectionConfig::default())).unwrap();
    let (local, remote) =
        if is_ipv6 { ("[fd00::1]:0", "[fd00::2]:0") } else { ("10.0.0.1:0", "10.0.0.2:0") };
    let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
    let options = ConnectOptions { local, remote, ..connect_options(config) };
    let id = net.ends[CLIENT].connect(net.now, options).unwrap();
    net.run(Duration::from_secs(1));
    let like = net.last[CLIENT].clone().unwrap();
    SendingClient { net, id, like }
}

impl SendingClient {
    fn send(&mut self, len: u32) {
        let (now, message) = (self.net.now, Message::new(Payload::Zeros(len)));
        // Errors do not matter: a full queue keeps the sender busy.
        let _ = self.net.ends[CLIENT].send(now, self.id, message);
    }

    fn mps(&self) -> usize {
        self.net.ends[CLIENT].max_message_size(self.id).unwrap()
    }

    fn lost(&self) -> u64 {
        self.net.ends[CLIENT].counters(self.id).unwrap().data_packets_lost
    }

    fn report(&mut self, quoted: &[u8], mtu: u16) {
        let (now, src, dst) = (self.net.now, self.like.src, self.like.dst);
        self.net.ends[CLIENT].handle_path_report(now, src, dst, quoted, PathReport::PathMtu(mtu));
    }
}

/// What an attacker who knows addresses and ports can quote.
fn guess(like: &Datagram, rng: &mut udccp_base::Rng) -> Vec<u8> {
    let mut quoted = like.header[..16].to_vec();
    let number = rng.below(1 << 48).to_be_bytes();
    quoted[10..16].copy_from_slice(&number[2..]);
    match rng.below(3) {
        0 => quoted.truncate(8),
        // A header with a short number: the 24 bits can be guessed by a flood.
        1 => {
            quoted[8] &= !1;
            quoted[9..12].copy_from_slice(&number[5..]);
            quoted.truncate(12);
        }
        _ => {}
    }
    quoted
}

//= 4340-14.1-6 test
#[test]
fn a_million_forged_messages_change_nothing() {
    for (is_ipv6, probing) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut client = sending_client(is_ipv6, config(probing));
        let full = client.mps();
        let mut rng = Seed(14).stream("forger");
        let mut n = 0_u32;
        // Ordinary loss of one packet in ten.
        client.net.filter = Some(Box::new(move |from, d| {
            n += u32::from(from == CLIENT && !d.payload.is_empty());
            from == SERVER || d.payload.is_empty() || n % 10 != 0
        }));
        for round in 0..250 {
            // One size for long enough that, given the losses, a confused router would be believed.
            let mtu = [0, 68, 128, 576, 1000, 1280, 1400][round / 36];
            for _ in 0..1000 {
                let quoted = guess(&client.like, &mut rng);
                client.report(&quoted, mtu);
            }
            // Large and small messages.
            client.send(full as u32);
            client.send(if round % 2 == 0 { 10 } else { full as u32 });
            client.net.run(Duration::from_millis(20));
            assert_eq!(client.mps(), full, "IPv6: {is_ipv6}, probing: {probing}, round {round}");
        }
        assert!(client.lost() > 8, "only {} lost", client.lost());
    }
}
