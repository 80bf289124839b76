//! Inviting one client (RFC 5596).

use udccp_proto::InviteOptions;
use udccp_wire::ServiceCode;

use super::calls::unroutable;
use super::fitted::fit_to_system;
use super::handle::{Handle, ListenHandle};
use super::waiters::Listening;
use crate::{Address, Error, Options};

impl Handle {
    /// Starts to wait for `peer` only, and sends it Listen packets.
    pub(crate) fn invite(
        &self,
        port: u16,
        peer: Address,
        service: ServiceCode,
        options: &Options,
    ) -> Result<ListenHandle, Error> {
        let shared = self.shared();
        shared.check_process()?;
        let peer = shared.peer(peer)?;
        let now = shared.clock.now();
        let route = shared.io.route_to(now, peer.udp).map_err(|e| unroutable(e, peer))?;
        let mut config = (*options.config).clone();
        fit_to_system(&mut config, &shared.io);
        let path_mtu = config.path_mtu;
        shared.note_linger(config.close_linger);
        let invite = InviteOptions {
            local: route.source,
            local_port: port,
            remote: peer.udp,
            remote_port: peer.port,
            service,
            sends_listen: true,
            config: config.into(),
        };
        let id = shared.with(|core, io, now| {
            core.claim_to_listen(io, port)?;
            let id = core.endpoint.invite(now, invite).map_err(Error::listen)?;
            core.listeners.insert(id, Listening::default());
            core.flush(io, now);
            Ok::<_, Error>(id)
        })??;
        let listener = ListenHandle::new(self.clone(), id, port, path_mtu);
        self.start()?;
        Ok(listener)
    }
}
