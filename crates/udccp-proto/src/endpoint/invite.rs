//! Invitations of one client (RFC 5596): a server behind a middlebox opens the way from its side.

use core::net::SocketAddr;

use udccp_base::{Datagram, Duration, Instant};
use udccp_wire::{Header, HeaderKind, PacketType, Seqno, ServiceCode};

use super::{Endpoint, out_of_the_blue};
use crate::config::{InitCookies, InviteOptions, ListenConfig};
use crate::connection::{Arena, Received};
use crate::error::ListenError;
use crate::ids::ListenerId;
use crate::tuple::FourTuple;

/// Time between two Listen packets, and from the last one to LISTEN1 (RFC 5596 section 2.2.2).
const LISTEN_INTERVAL: Duration = Duration::from_millis(200);

/// Listen packets of one invitation: the first and two retransmissions.
const MAX_LISTENS: u8 = 3;

/// The state of a listener (RFC 4340 section 4.3, RFC 5596 section 2.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerState {
    /// It waits for any client.
    Listen,
    /// It waits for one client, and sends it Listen packets.
    Invited,
    /// It waits for one client, and sends nothing.
    Listen1,
}

/// The one client of a listener.
#[derive(Clone, Copy, Debug)]
pub(super) struct Invitation {
    pub(super) tuple: FourTuple,
    service: ServiceCode,
    listens_sent: u8,
    /// When the next Listen is sent, or INVITED ends; `None` in LISTEN1.
    next: Option<Instant>,
}

impl Invitation {
    /// When the next step is due.
    pub(super) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Ends INVITED. Returns when the next step was due.
    pub(super) fn take_next(&mut self) -> Option<Instant> {
        self.next.take()
    }

    /// The state of the listener.
    pub(super) const fn state(&self) -> ListenerState {
        match self.next {
            Some(_) => ListenerState::Invited,
            None => ListenerState::Listen1,
        }
    }
}

impl Endpoint {
    //= 5596-2.2.2-1
    //= 5596-4-1
    /// Waits for one client at a known address and invites it: Listen packets make middleboxes on
    /// the path let its Request pass (RFC 5596). `accept` returns the connection; the listener then
    /// ends. A client that supports RFC 5596 and receives a Listen in REQUEST sends its Request
    /// again at once.
    ///
    /// # Errors
    /// [`ListenError::InUse`], [`ListenError::BadAddress`], or an invalid setting or service code.
    pub fn invite(
        &mut self,
        now: Instant,
        options: InviteOptions,
    ) -> Result<ListenerId, ListenError> {
        let InviteOptions { local, local_port, remote, remote_port, .. } = options;
        if local.is_ipv4() != remote.is_ipv4() || !is_host(local) || !is_host(remote) {
            return Err(ListenError::BadAddress);
        }
        let (service, tells) = (options.service, options.sends_listen);
        let tuple = FourTuple { local, local_port, remote, remote_port };
        //= 5596-4-2
        let next = tells.then_some(now);
        let invitation = Invitation { tuple, service, listens_sent: 0, next };
        self.check_registered(&options.config)?;
        let config = ListenConfig {
            backlog: 1,
            // State is kept for this client in any case (RFC 5596 section 4).
            init_cookies: InitCookies::Never,
            connection: options.config,
            ..ListenConfig::new(service)
        };
        let id = self.listeners.add(Some(local), local_port, config, Some(invitation))?;
        self.send_listens(now);
        self.note_rare_wake();
        Ok(id)
    }

    /// The state of a listener; `None` if there is none with this id.
    pub fn listener_state(&self, listener: ListenerId) -> Option<ListenerState> {
        let invitation = self.listeners.get(listener)?.invitation.as_ref();
        Some(invitation.map_or(ListenerState::Listen, |invitation| invitation.state()))
    }

    /// Sends the Listen packets that are due.
    pub(super) fn send_listens(&mut self, now: Instant) {
        while let Some(id) = self.listeners.next_invitation().filter(|(at, _)| *at <= now) {
            let Some(entry) = self.listeners.invitation_mut(id.1) else { return };
            //= 5596-2.2.2-2
            //= 5596-2.2.2-3
            entry.next = (entry.listens_sent < MAX_LISTENS).then_some(now + LISTEN_INTERVAL);
            let next = entry.next;
            if next.is_some() {
                entry.listens_sent += 1;
                let listen = listen_packet(entry);
                let listen = listen.finish(&mut self.arena);
                self.answer(listen);
                self.counters.rare().listens_sent += 1;
            }
            self.listeners.move_invitation(id, next);
        }
    }

    //= 5596-2.2.1-3
    //= 5596-2.2.1-6
    //= 5596-2.2.1-7
    //= 5596-2.2.2-5
    //= 5596-2.2.3-1
    //= 5596-2.2.3.1-1
    /// Processes a Listen packet. It affects only a client in REQUEST, once.
    #[cold]
    pub(super) fn take_listen(&mut self, now: Instant, packet: &Received<'_>) {
        debug_assert_eq!(packet.ty, PacketType::Listen);
        self.counters.rare().listens_received += 1;
        let tuple = packet.tuple();
        let Some(index) = self.table.find(&self.slots, &tuple) else { return };
        if let Some((connection, _)) = self.connection_at(now, index) {
            connection.on_listen();
            self.make_ready(index);
        }
    }
}

/// The content of a [`listen_packet`], and its destination.
struct Listen {
    header: Header,
    src: SocketAddr,
    dst: SocketAddr,
}

//= 5596-2.2.1-1
//= 5596-2.2.1-2
//= 5596-2.2.1-5
//= 5596-2.2.1-8
//= 5596-2.2.1-9
//= 5596-2.2.1-10
//= 5596-2.2.1-11
/// The Listen packet of an invitation.
fn listen_packet(invitation: &Invitation) -> Listen {
    let FourTuple { local, local_port, remote, remote_port } = invitation.tuple;
    let header = Header {
        src_port: local_port,
        dst_port: remote_port,
        ccval: 0,
        cscov: 0,
        x: true,
        seq: Seqno::ZERO,
        kind: HeaderKind::Listen { service: invitation.service },
    };
    Listen { header, src: local, dst: remote }
}

impl Listen {
    fn finish(self, arena: &mut Arena) -> Datagram {
        out_of_the_blue::alone(&self.header, self.src, self.dst, arena)
    }
}

fn is_host(at: SocketAddr) -> bool {
    !at.ip().is_unspecified() && !at.ip().is_multicast()
}
