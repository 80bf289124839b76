//! A CCID of an application: registered by number, and called through a box.

mod common;
mod spec_support;

use std::sync::{Arc, Mutex};

use spec_support::{Harness, plain, reset};
use udccp_base::{Duration, Instant};
use udccp_proto::ConnectionConfig;
use udccp_proto::ccid::ccid2::{Ccid2Receiver, Ccid2Sender};
use udccp_proto::ccid::{
    AckInfo, AckOutcome, CcidFactory, CcidMetrics, CcidReceiver, CcidRegistry, CcidSender,
    CcidSetup, FeatureNeed, SendVerdict, SentInfo, TimeoutOutcome,
};
use udccp_wire::{OptionRef, PacketType, ResetCode};

const NUMBER: u8 = 251;
/// The option that it understands.
const OPTION: u8 = 200;

type Seen = Arc<Mutex<Vec<u8>>>;

/// Sends as CCID 2 does, and keeps the options of its own.
#[derive(Clone, Debug)]
struct Own(Ccid2Sender, Seen);

impl CcidSender for Own {
    fn ccid(&self) -> u8 {
        NUMBER
    }

    fn reads_option(&self, option: &OptionRef<'_>) -> bool {
        option.kind() == OPTION
    }

    fn poll_send(&mut self, now: Instant, size_bytes: u32) -> SendVerdict {
        self.0.poll_send(now, size_bytes)
    }

    fn on_sent(&mut self, now: Instant, packet: SentInfo) {
        self.0.on_sent(now, packet);
    }

    fn on_ack(&mut self, now: Instant, ack: &AckInfo<'_>) -> AckOutcome {
        self.1.lock().unwrap().extend(ack.ccid_options);
        self.0.on_ack(now, ack)
    }

    fn seq_window_needed(&self) -> u64 {
        self.0.seq_window_needed()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) -> TimeoutOutcome {
        self.0.handle_timeout(now)
    }

    fn rtt(&self) -> Option<Duration> {
        self.0.rtt()
    }

    fn rto(&self) -> Duration {
        self.0.rto()
    }

    fn metrics(&self) -> CcidMetrics {
        self.0.metrics()
    }
}

#[derive(Debug)]
struct Factory(Seen);

impl CcidFactory for Factory {
    fn sender(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidSender> {
        let sender = Ccid2Sender::new(setup.ccid2, setup.packet_size_bytes);
        Box::new(Own(sender, self.0.clone()))
    }

    fn receiver(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidReceiver> {
        Box::new(Ccid2Receiver::new(setup.ccid2))
    }

    fn needed_features(&self) -> &'static [FeatureNeed] {
        &[]
    }
}

/// The Reset for these options on an Ack, and what the sender half has seen of its own.
fn answer(options: &[OptionRef<'_>]) -> (Option<(ResetCode, [u8; 3])>, Vec<u8>) {
    let seen = Seen::default();
    let mut ccids = CcidRegistry::default();
    ccids.register(NUMBER, Arc::new(Factory(seen.clone()))).unwrap();
    let (tx_ccids, rx_ccids) = (vec![NUMBER], vec![NUMBER]);
    let config = ConnectionConfig { tx_ccids, rx_ccids, ..plain() };
    let mut harness = Harness::open_of(common::pair::SERVER, config, ccids);
    let sent = reset(&harness.deliver(PacketType::Ack, options, &[]));
    let seen = seen.lock().unwrap().clone();
    (sent, seen)
}

//= 4340-5.8.2-1 test
#[test]
fn mandatory_before_an_option_that_the_ccid_understands_has_no_effect() {
    let of = |kind| OptionRef::CcidSpecific { kind, data: &[7] };
    assert_eq!(answer(&[of(OPTION)]), (None, vec![OPTION, 3, 7]));
    assert_eq!(answer(&[OptionRef::Mandatory, of(OPTION)]), (None, vec![OPTION, 3, 7]));
    for other in [OPTION - 1, OPTION + 1, 128] {
        assert_eq!(answer(&[of(other)]).0, None);
        let (sent, seen) = answer(&[OptionRef::Mandatory, of(other)]);
        assert_eq!((sent, seen), (Some((ResetCode::MandatoryError, [other, 7, 0])), vec![]));
    }
}
