//! Experimental CCIDs: CCID 2's acknowledgements under other congestion controls.
//!
//! RFC 4340 section 10.1 sets the numbers 248 to 254 aside for experiments. Both ends must have
//! registered the same meaning of a number; nothing here is in [`CcidRegistry::default`].
//!
//! A flow under one of these reads Ack Vectors, asks for an Ack Ratio and judges losses as CCID 2
//! does (RFC 4341). What differs is the window: CUBIC's curve, so that a flow holds its own next to
//! TCP CUBIC where round-trip times are long; or BBR's model of the path, as
//! draft-romo-iccrg-ccid5-00 has it.

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

/// CCID 2 with another window algorithm under another number.
///
/// The first window, the largest window, timeouts and Ack Ratio are those of the connection's
/// settings of CCID 2.
#[derive(Clone, Debug)]
pub struct WindowCcid {
    /// The CCID's number.
    pub number: u8,
    /// The window algorithm.
    pub algorithm: Algorithm,
    /// Growth in slow start.
    pub slow_start: SlowStartGrowth,
    /// What becomes of a window that was not used; `None` leaves CCID 2's.
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
            // BBR answers silence with its own rate; validation would cut its window.
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
            // The numbers are free: the standard ones are far below.
            let added: Result<(), RegistryError> = all.register(ccid.number, Arc::new(ccid));
            debug_assert!(added.is_ok(), "{added:?}");
        }
        all
    }
}
