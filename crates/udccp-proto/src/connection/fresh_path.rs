//! A path that is another one now (RFC 4340 sections 10.5 and 14.1).

use udccp_base::Duration;

use super::{Connection, Ctx};

/// Least time between two searches for the path's MTU that an application asks for.
const REDISCOVERY_INTERVAL: Duration = Duration::from_secs(2);

impl Connection {
    /// The path has changed: what congestion control learnt of it holds no more. Both halves begin
    /// anew, as does the search for the path's MTU.
    pub(crate) fn path_changed(&mut self, ctx: &mut Ctx<'_>) {
        if !self.state.transfers() {
            return;
        }
        let c = &mut self.counters;
        // Nobody will account for what is in the network now.
        let settled = c.data_packets_acked + c.data_packets_lost;
        c.data_packets_lost += c.data_packets_sent.saturating_sub(settled);
        self.timing.handshake_rtt = None;
        self.blocked_at = None;
        //= 4340-10.5-1
        let ccids = (self.tx.as_ref().map(|tx| tx.ccid()), self.rx.as_ref().map(|rx| rx.ccid()));
        if let (Some(tx), Some(rx)) = ccids {
            // They were there before, so they are registered.
            let _ = self.install_sender(ctx, tx);
            let _ = self.install_receiver(ctx, rx);
        }
        self.set_path_mtu(ctx, self.config.path_mtu);
    }

    /// Forgets what is known of the path's MTU and begins with the interface's, unless that was
    /// done just now; whether it was done.
    pub(crate) fn rediscover_path_mtu(&mut self, ctx: &mut Ctx<'_>) -> bool {
        //= 4340-14.1-3
        let ready = self.rediscovered.is_none_or(|at| ctx.now - at >= REDISCOVERY_INTERVAL);
        if ready {
            self.rediscovered = Some(ctx.now);
            self.set_path_mtu(ctx, self.config.path_mtu);
        }
        ready
    }
}
