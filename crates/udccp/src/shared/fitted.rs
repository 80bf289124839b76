//! Adapts settings to the system, once for all connections that share them.

use std::sync::{Arc, Mutex, PoisonError};

use udccp_proto::{ConnectionConfig, SharedConfig};

use crate::io::{Io, KERNEL_OVERHEAD_BYTES};

/// The settings of the last connection.
#[derive(Debug, Default)]
pub(crate) struct Fitted(Mutex<Option<Last>>);

#[derive(Debug)]
struct Last {
    wished: Arc<ConnectionConfig>,
    fitted: SharedConfig,
}

impl Fitted {
    /// These settings, limited to what the system and a path of at most `path_mtu` bytes allow. The
    /// next connection with the same settings shares the same object.
    pub(crate) fn of(
        &self,
        wished: &Arc<ConnectionConfig>,
        path_mtu: u16,
        io: &Io,
    ) -> SharedConfig {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |l: &&Last| {
            Arc::ptr_eq(&l.wished, wished)
                && l.fitted.path_mtu == path_mtu
                && (l.fitted.pmtu_probing.is_none() || !io.may_fragment())
        };
        if let Some(last) = last.as_ref().filter(is_same) {
            return last.fitted.clone();
        }
        let mut fitted = (**wished).clone();
        fit_to_system(&mut fitted, io);
        fitted.path_mtu = path_mtu;
        let (wished, fitted) = (Arc::clone(wished), SharedConfig::from(fitted));
        *last = Some(Last { wished, fitted: fitted.clone() });
        fitted
    }
}

/// Disables what the system cannot do, and limits the receive queue, and with it the peer's window,
/// to what the kernel can hold while the driver does not run: a burst of a full window must fit
/// there.
pub(super) fn fit_to_system(config: &mut ConnectionConfig, io: &Io) {
    let room = io.recv_buffer_bytes() / 2;
    if io.may_fragment() {
        // Probes that are fragmented measure nothing.
        config.pmtu_probing = None;
    }
    config.recv_queue_bytes = config.recv_queue_bytes.min(room).max(1);
    config.recv_queue_packets = config.recv_queue_packets.min(room / KERNEL_OVERHEAD_BYTES).max(1);
}
