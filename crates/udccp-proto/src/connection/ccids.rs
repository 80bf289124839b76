//! Feature values that came into force, and the congestion control that they choose.

use udccp_wire::{FeatureNumber, ResetCode, option_kind};

use super::{Connection, Ctx, Received};
use crate::ccid::{CcidFactory, CcidSetup, FeatureNeed};
use crate::config::{ConnectionConfig, MAX_SEQUENCE_WINDOW};
use crate::features::{Location, PacketContext};

/// The connection was reset.
#[derive(Clone, Copy, Debug)]
pub(super) struct WasReset;

impl Connection {
    /// Announces a packet to feature negotiation, which takes no part in Data packets.
    pub(super) fn negotiate_begin(&mut self, packet: &Received<'_>) {
        if packet.ty == udccp_wire::PacketType::Data {
            return;
        }
        let (packet_type, seq, ackno) = (packet.ty, packet.seq, packet.ackno);
        self.features.begin_packet(PacketContext { packet_type, seq, ackno });
    }

    /// Creates both halves of congestion control as the handshake chose them, and asks for the
    /// features that they need.
    pub(super) fn install_ccids(&mut self, ctx: &mut Ctx<'_>) -> Result<(), WasReset> {
        let ccid = |location| {
            let value = self.features.upcoming_value(location, FeatureNumber::CCID);
            value.unwrap_or_default() as u8
        };
        let (tx, rx) = (ccid(Location::Local), ccid(Location::Remote));
        self.install_sender(ctx, tx)?;
        self.install_receiver(ctx, rx)?;
        self.pass_on_handshake_rtt(ctx);
        Ok(())
    }

    pub(super) fn install_sender(&mut self, ctx: &mut Ctx<'_>, ccid: u8) -> Result<(), WasReset> {
        let factory = self.factory(ctx, ccid)?;
        let setup = self.ccid_setup();
        self.tx = Some(factory.sender(&setup));
        self.tx_needs = factory.needed_features();
        self.ask_for(self.tx_needs, |location| location);
        self.limit_in_flight();
        Ok(())
    }

    pub(super) fn install_receiver(&mut self, ctx: &mut Ctx<'_>, ccid: u8) -> Result<(), WasReset> {
        let factory = self.factory(ctx, ccid)?;
        let setup = self.ccid_setup();
        let mut receiver = factory.receiver(&setup);
        // The peer's sender half has needs too; the server settles them all in its Response.
        let needs: &[_] = match self.is_server() {
            true => factory.needed_features(),
            false => &[],
        };
        let ratio = self.features.value(Location::Remote, FeatureNumber::ACK_RATIO);
        receiver.set_ack_ratio(ratio.unwrap_or(2) as u16);
        self.rx = Some(receiver);
        self.ask_for(needs, mirrored);
        Ok(())
    }

    /// The handshake is over for us: both CCIDs stay what they are. Another one would begin with
    /// fresh congestion state, and a receiver could wipe out the reaction to each loss.
    //= 4340-10.5-4
    pub(super) fn fix_ccids(&mut self) {
        for location in [Location::Local, Location::Remote] {
            self.features.fix(location, FeatureNumber::CCID);
        }
    }

    fn ccid_setup(&self) -> CcidSetup<'_> {
        let packet_size_bytes = self.path.mps() as u32;
        let ConnectionConfig { ccid2, ccid3, ccid4, .. } = &*self.config;
        CcidSetup { packet_size_bytes, ccid2, ccid3, ccid4 }
    }

    fn factory<'r>(
        &mut self,
        ctx: &mut Ctx<'r>,
        ccid: u8,
    ) -> Result<&'r dyn CcidFactory, WasReset> {
        let registry = ctx.registry;
        if let Some(factory) = registry.get(ccid) {
            return Ok(factory);
        }
        let data = [option_kind::CHANGE_L, FeatureNumber::CCID.0, ccid];
        self.reset_for_fault(ctx, ResetCode::OptionError, data);
        Err(WasReset)
    }

    fn ask_for(&mut self, needs: &[FeatureNeed], place: impl Fn(Location) -> Location) {
        for need in needs {
            let location = place(need.location);
            // A need that the engine does not know cannot be met; the peer's CCID will notice.
            let _ = self.features.change(location, need.feature, &[need.value], need.mandatory);
        }
    }

    /// Takes over what feature negotiation settled.
    pub(super) fn take_activated(&mut self, ctx: &mut Ctx<'_>) -> Result<(), WasReset> {
        while let Some(activated) = self.features.poll_activated() {
            self.agreed.apply(activated);
            let value = activated.value;
            match (activated.feature, activated.location) {
                (FeatureNumber::CCID, Location::Local) => self.change_sender(ctx, value as u8)?,
                (FeatureNumber::CCID, Location::Remote) => {
                    self.change_receiver(ctx, value as u8)?
                }
                (FeatureNumber::SEQUENCE_WINDOW, Location::Remote) => {
                    self.widen_remote_window(value);
                }
                (FeatureNumber::SEQUENCE_WINDOW, Location::Local) => self.limit_in_flight(),
                (FeatureNumber::ACK_RATIO, Location::Local) => {
                    if let Some(tx) = &mut self.tx {
                        tx.on_ack_ratio_confirmed(value as u16);
                    }
                }
                (FeatureNumber::ACK_RATIO, Location::Remote) => {
                    if let Some(rx) = &mut self.rx {
                        rx.set_ack_ratio(value as u16);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The peer's numbers are valid in this window from now on. A wide one makes short numbers
    /// easy to guess: they are taken back.
    fn widen_remote_window(&mut self, window: u64) {
        self.seq.window_remote = window;
        //= 4340-7.5.5-1
        if self.agreed.must_refuse_short(window) {
            let feature = FeatureNumber::ALLOW_SHORT_SEQNOS;
            let _ = self.features.change(Location::Remote, feature, &[0], false);
        }
    }

    fn change_sender(&mut self, ctx: &mut Ctx<'_>, ccid: u8) -> Result<(), WasReset> {
        match &self.tx {
            Some(tx) if tx.ccid() != ccid => self.install_sender(ctx, ccid),
            _ => Ok(()),
        }
    }

    fn change_receiver(&mut self, ctx: &mut Ctx<'_>, ccid: u8) -> Result<(), WasReset> {
        match &self.rx {
            Some(rx) if rx.ccid() != ccid => self.install_receiver(ctx, ccid),
            _ => Ok(()),
        }
    }

    /// Asks for a Sequence Window with room for the next few doublings of speed.
    pub(super) fn ask_sequence_window(&mut self, needed: u64) {
        let roomy = needed.saturating_mul(2).checked_next_power_of_two();
        let window = roomy.unwrap_or(MAX_SEQUENCE_WINDOW).min(MAX_SEQUENCE_WINDOW);
        self.asked.sequence_window = window;
        // What we asked for holds at once for acknowledgements of our own packets; the peer's
        // view of our packets widens when it confirms.
        self.seq.window_local = window;
        let feature = FeatureNumber::SEQUENCE_WINDOW;
        let _ = self.features.change(Location::Local, feature, &[window], false);
    }

    pub(super) fn ask_ack_ratio(&mut self, ratio: u16) {
        self.asked.ack_ratio = ratio;
        let feature = FeatureNumber::ACK_RATIO;
        let _ = self.features.change(Location::Local, feature, &[u64::from(ratio)], false);
    }

    /// Keeps so few packets in flight that the loss of all leaves us within the peer's window.
    //= 4340-7.5.2-3
    fn limit_in_flight(&mut self) {
        let ahead = self.agreed.sequence_window / 4 * 3;
        if let Some(tx) = &mut self.tx {
            tx.limit_in_flight(ahead);
        }
    }
}

const fn mirrored(location: Location) -> Location {
    match location {
        Location::Local => Location::Remote,
        Location::Remote => Location::Local,
    }
}
