//! Experimental CCIDs: the acknowledgements of CCID 2 with other congestion control.
//!
//! RFC 4340 section 10.1 reserves the numbers 248 to 254 for experiments. Both sides must give a
//! number the same meaning. None of these are in [`CcidRegistry::default`].
//!
//! A flow with one of these reads Ack Vectors, asks for an Ack Ratio and detects losses as CCID 2
//! does (RFC 4341). The window differs: either CUBIC, so that a flow can compete with TCP CUBIC
//! over long round-trip times, or BBR's model of the path, as in draft-romo-iccrg-ccid5-00.

use std::sync::Arc;

use udccp_cc::{Algorithm, BbrConfig, CubicConfig, HyStart, IdlePolicy};

use crate::ccid::ccid2::{
    Ccid2Config, Ccid2Receiver, Ccid2Sender, NEEDED_FEATURES, SlowStartGrowth,
};
use crate::ccid::{
    CcidFactory, CcidReceiver, CcidRegistry, CcidSender, CcidSetup, FeatureNeed, ReceiverHalf,
    RegistryError, SenderHalf,
};

/// CUBIC (RFC 9438) with HyStart over Ack Vectors.
pub const CUBIC: u8 = 249;
/// BBR v1 over Ack Vectors (draft-romo-iccrg-ccid5-00 calls it CCID 5, a number that was never
/// assigned).
pub const BBR: u8 = 250;

/// CCID 2 with another window algorithm, under another number.
///
/// Initial window, largest window, timeouts and Ack Ratio are those of the connection's CCID 2
/// settings.
#[derive(Clone, Debug)]
pub struct WindowCcid {
    /// The CCID's number.
    pub number: u8,
    /// The window algorithm.
    pub algorithm: Algorithm,
    /// Growth in slow start.
    pub slow_start: SlowStartGrowth,
    /// What happens to a window that the application does not use; `None`: as in CCID 2.
    pub idle: Option<IdlePolicy>,
}

impl WindowCcid {
    /// [`CUBIC`].
    pub fn cubic() -> Self {
        Self {
            number: CUBIC,
            algorithm: Algorithm::Cubic(CubicConfig::with_hystart(HyStart::Classic)),
            slow_start: SlowStartGrowth::EveryPacket,
            idle: None,
        }
    }

    /// [`BBR`].
    pub fn bbr() -> Self {
        Self {
            number: BBR,
            algorithm: Algorithm::Bbr(BbrConfig::default()),
            slow_start: SlowStartGrowth::EveryPacket,
            // BBR responds to silence with its own rate; validation would reduce its window.
            idle: Some(IdlePolicy::Restart),
        }
    }

    pub(crate) fn config(&self, base: &Ccid2Config) -> Ccid2Config {
        Ccid2Config {
            algorithm: self.algorithm.clone(),
            slow_start: self.slow_start,
            idle: self.idle.unwrap_or(base.idle),
            ..base.clone()
        }
    }

    fn sender_of(&self, setup: &CcidSetup<'_>) -> Box<Ccid2Sender> {
        let config = self.config(setup.ccid2);
        Box::new(Ccid2Sender::numbered(self.number, &config, setup.packet_size_bytes))
    }

    fn receiver_of(&self, setup: &CcidSetup<'_>) -> Ccid2Receiver {
        Ccid2Receiver::numbered(self.number, setup.ccid2)
    }
}

impl CcidFactory for WindowCcid {
    fn sender(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidSender> {
        self.sender_of(setup)
    }

    fn receiver(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidReceiver> {
        Box::new(self.receiver_of(setup))
    }

    fn needed_features(&self) -> &'static [FeatureNeed] {
        NEEDED_FEATURES
    }

    fn sender_half(&self, setup: &CcidSetup<'_>) -> SenderHalf {
        SenderHalf::Ccid2(self.sender_of(setup))
    }

    fn receiver_half(&self, setup: &CcidSetup<'_>) -> ReceiverHalf {
        ReceiverHalf::Ccid2(self.receiver_of(setup))
    }
}

impl CcidRegistry {
    /// The standard CCIDs, [`CUBIC`] and [`BBR`].
    pub fn with_experiments() -> Self {
        let mut all = Self::default();
        for ccid in [WindowCcid::cubic(), WindowCcid::bbr()] {
            // The numbers are free, because the standard ones are far below.
            let added: Result<(), RegistryError> = all.register(ccid.number, Arc::new(ccid));
            debug_assert!(added.is_ok(), "{added:?}");
        }
        all
    }
}
