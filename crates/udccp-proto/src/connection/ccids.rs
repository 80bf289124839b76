//! Installs the congestion control that the handshake chose, and applies feature values that came
//! into force.

use udccp_wire::{FeatureNumber, ResetCode, option_kind};

use super::{Connection, Ctx};
use crate::ccid::{CcidFactory, CcidSetup};
use crate::config::ConnectionConfig;
use crate::features::Location;

/// The connection was reset.
#[derive(Clone, Copy, Debug)]
pub(super) struct WasReset;

impl Connection {
    /// Creates both halves of congestion control as the handshake chose them, and requests the
    /// features that they need.
    pub(super) fn install_ccids(&mut self, ctx: &mut Ctx<'_>) -> Result<(), WasReset> {
        let tx = self.negotiation.ccid(Location::Local);
        let rx = self.negotiation.ccid(Location::Remote);
        self.install_sender(ctx, tx)?;
        self.install_receiver(ctx, rx)?;
        self.pass_on_handshake_rtt(ctx);
        Ok(())
    }

    pub(super) fn install_sender(&mut self, ctx: &mut Ctx<'_>, ccid: u8) -> Result<(), WasReset> {
        let factory = self.factory(ctx, ccid)?;
        let setup = ccid_setup(&self.config, self.path.max_message_size());
        let needs = self.cc.install_sender(factory, &setup);
        self.negotiation.ask_for(needs, |location| location);
        self.cc.limit_in_flight(self.negotiation.safe_in_flight());
        Ok(())
    }

    pub(super) fn install_receiver(&mut self, ctx: &mut Ctx<'_>, ccid: u8) -> Result<(), WasReset> {
        let factory = self.factory(ctx, ccid)?;
        let setup = ccid_setup(&self.config, self.path.max_message_size());
        self.cc.install_receiver(factory, &setup, self.negotiation.peer_ack_ratio());
        if self.is_server() {
            // The peer's sender half has needs too. The server settles them all in its Response.
            self.negotiation.ask_for(factory.needed_features(), mirrored);
        }
        Ok(())
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
        self.reset_for_error(ctx, ResetCode::OptionError, data);
        Err(WasReset)
    }

    /// Applies what feature negotiation settled.
    pub(super) fn take_activated(&mut self, ctx: &mut Ctx<'_>) -> Result<(), WasReset> {
        while let Some(activated) = self.negotiation.poll_activated() {
            let value = activated.value;
            match (activated.feature, activated.location) {
                (FeatureNumber::CCID, Location::Local) => self.change_sender(ctx, value as u8)?,
                (FeatureNumber::CCID, Location::Remote) => {
                    self.change_receiver(ctx, value as u8)?
                }
                (FeatureNumber::SEQUENCE_WINDOW, Location::Remote) => {
                    self.seq.window_remote = value;
                    self.negotiation.on_remote_window(value);
                }
                (FeatureNumber::SEQUENCE_WINDOW, Location::Local) => {
                    self.cc.limit_in_flight(self.negotiation.safe_in_flight());
                }
                (FeatureNumber::ACK_RATIO, Location::Local) => {
                    self.cc.on_ack_ratio_confirmed(value as u16);
                }
                (FeatureNumber::ACK_RATIO, Location::Remote) => {
                    self.cc.set_ack_ratio(value as u16);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn change_sender(&mut self, ctx: &mut Ctx<'_>, ccid: u8) -> Result<(), WasReset> {
        match self.cc.sender_ccid() {
            Some(before) if before != ccid => self.install_sender(ctx, ccid),
            _ => Ok(()),
        }
    }

    fn change_receiver(&mut self, ctx: &mut Ctx<'_>, ccid: u8) -> Result<(), WasReset> {
        match self.cc.receiver_ccid() {
            Some(before) if before != ccid => self.install_receiver(ctx, ccid),
            _ => Ok(()),
        }
    }
}

fn ccid_setup(config: &ConnectionConfig, max_message_size: usize) -> CcidSetup<'_> {
    let ConnectionConfig { ccid2, ccid3, ccid4, .. } = config;
    CcidSetup { packet_size_bytes: max_message_size as u32, ccid2, ccid3, ccid4 }
}

const fn mirrored(location: Location) -> Location {
    match location {
        Location::Local => Location::Remote,
        Location::Remote => Location::Local,
    }
}
