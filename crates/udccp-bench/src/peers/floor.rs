//! A lower bound for the cost of a datagram: batches with segmentation offload, each acknowledged
//! by one small datagram, few of them in flight, and no protocol.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc::channel;
use std::time::Instant;

use anyhow::Result;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::meter::{Measured, Meter};
use crate::network::Network;
use crate::turn::{BULK_BYTES, Turn};

/// Datagrams that fit into one packet of the network stack: 65,507 bytes of UDP payload.
const BATCH: usize = 65_507 / BULK_BYTES;
/// Most batches in flight.
const WINDOW: usize = 8;
/// A message of this length ends the transfer.
const END: [u8; 1] = [0];
/// An acknowledgement: the number of datagrams received.
const ACK_BYTES: usize = 8;

struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    fn bind(at: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::bind(at)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        for grow in [UdpSocketState::set_send_buffer_size, UdpSocketState::set_recv_buffer_size] {
            grow(&state, UdpSockRef::from(&socket), 4 << 20)?;
        }
        Ok(Self { socket, state })
    }

    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        poll(&mut [PollFd::new(self.socket.as_fd(), flags)], PollTimeout::NONE)?;
        Ok(())
    }

    fn send(&self, to: SocketAddr, bytes: &[u8], segment: Option<usize>) -> io::Result<()> {
        let batch = Transmit {
            destination: to,
            ecn: None,
            contents: bytes,
            segment_size: segment,
            src_ip: None,
        };
        loop {
            match self.state.try_send(UdpSockRef::from(&self.socket), &batch) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.wait(PollFlags::POLLOUT)?,
                done => return done,
            }
        }
    }
}

/// Buffers for one receive call.
struct Buffers {
    bytes: Vec<Vec<u8>>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Buffers {
    fn new() -> Self {
        Self { bytes: vec![vec![0; 65_536]; BATCH_SIZE], metas: [RecvMeta::default(); BATCH_SIZE] }
    }

    /// Waits for acknowledgements and returns the number in the latest one.
    fn newest_ack(&mut self, from: &Socket) -> Result<u64> {
        let last = self.recv(from)?.len() - 1;
        // Consecutive datagrams of equal size are merged.
        let at = self.metas[last].len - ACK_BYTES;
        Ok(u64::from_le_bytes(self.bytes[last][at..at + ACK_BYTES].try_into()?))
    }

    /// Waits for datagrams. Returns the kernel's metadata of each run of them.
    fn recv(&mut self, from: &Socket) -> io::Result<&[RecvMeta]> {
        let mut slices: Vec<_> = self.bytes.iter_mut().map(|b| IoSliceMut::new(b)).collect();
        loop {
            let socket = UdpSockRef::from(&from.socket);
            match from.state.recv(socket, &mut slices, &mut self.metas) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => from.wait(PollFlags::POLLIN)?,
                done => return Ok(&self.metas[..done?]),
            }
        }
    }
}

/// Sends batches of datagrams until the time is over.
pub(crate) fn bulk(turn: &Turn) -> Result<Measured> {
    let (tx, rx) = channel();
    let server = turn.network.serve(move || {
        let socket = Socket::bind(Network::server_addr())?;
        tx.send(socket.socket.local_addr()?)?;
        serve(&socket)
    })?;
    let peer = rx.recv()?;
    let socket = Socket::bind(Network::client_addr())?;
    let batch = vec![7; BATCH * BULK_BYTES];
    let mut buffers = Buffers::new();
    let mut sent = 0_u64;
    let mut outstanding = VecDeque::new();
    let meter = Meter::start();
    let end = meter.after(turn.seconds);
    while Instant::now() < end || !outstanding.is_empty() {
        while outstanding.len() < WINDOW && Instant::now() < end {
            socket.send(peer, &batch, Some(BULK_BYTES))?;
            sent += BATCH as u64;
            outstanding.push_back(sent);
        }
        let acknowledged = buffers.newest_ack(&socket)?;
        outstanding.retain(|&end| end > acknowledged);
    }
    socket.send(peer, &END, None)?;
    let arrived = server.join()?;
    Ok(meter.stop(sent, arrived))
}

/// Counts received datagrams and acknowledges their number.
fn serve(socket: &Socket) -> Result<u64> {
    let mut buffers = Buffers::new();
    let mut arrived = 0_u64;
    loop {
        let (mut peer, mut is_over) = (None, false);
        for meta in buffers.recv(socket)? {
            is_over |= meta.len == END.len();
            arrived += (meta.len / BULK_BYTES) as u64;
            peer = Some(meta.addr);
        }
        if is_over {
            return Ok(arrived);
        }
        if let Some(peer) = peer {
            socket.send(peer, &arrived.to_le_bytes(), None)?;
        }
    }
}
