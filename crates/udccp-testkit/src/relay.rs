//! Relays UDP between two endpoints, and drops, delays, duplicates and corrupts packets by a rule.
//! It can be cut and restored, and can change the ports that either end sees, as a NAT does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use udccp_base::{Rng, Seed};

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is forwarded.
    Pass,
    /// It is dropped.
    Drop,
    /// It is forwarded twice.
    Twice,
    /// It is forwarded after this delay, so later packets can overtake it.
    Late(Duration),
}

/// Decides what happens to a packet, and may change its bytes. The flag is true for packets from
/// the client.
pub trait Rule: FnMut(bool, &mut Vec<u8>) -> Fate + Send + 'static {}
impl<F: FnMut(bool, &mut Vec<u8>) -> Fate + Send + 'static> Rule for F {}

/// A relay on the loopback interface. It ends when it is dropped.
#[derive(Debug)]
pub struct Relay {
    /// The UDP port that clients use instead of the server's.
    pub port: u16,
    is_open: Arc<AtomicBool>,
    near: Side,
    far: Side,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The sockets towards one end. One is active; packets that arrive at another wait until it is.
#[derive(Debug)]
struct Side {
    sockets: Mutex<Vec<Arc<UdpSocket>>>,
    in_use: watch::Sender<Arc<UdpSocket>>,
}

impl Side {
    fn new() -> Self {
        let first = socket();
        Self { sockets: Mutex::new(vec![Arc::clone(&first)]), in_use: watch::Sender::new(first) }
    }

    fn turn_to(&self, which: usize) {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        while sockets.len() <= which {
            sockets.push(socket());
        }
        self.in_use.send_replace(Arc::clone(&sockets[which]));
    }
}

fn socket() -> Arc<UdpSocket> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| {
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket)
    });
    Arc::new(socket.expect("a socket on the loopback interface"))
}

impl Relay {
    /// Starts a relay to `server`.
    ///
    /// # Panics
    /// If the loopback interface has no free ports.
    pub async fn start(server: SocketAddr, rule: impl Rule) -> Self {
        let (near, far) = (Side::new(), Side::new());
        let at = near.in_use.borrow().local_addr().expect("a bound socket has an address");
        let is_open = Arc::new(AtomicBool::new(true));
        let rule = until_cut(Arc::clone(&is_open), rule);
        let ends = (near.in_use.subscribe(), far.in_use.subscribe());
        let task = tokio::spawn(relay(ends.0, ends.1, server, rule));
        Self { port: at.port(), is_open, near, far, task }
    }

    /// From now on the server sees the client at this one of the relay's ports, counted from 0, and
    /// can reach it only there.
    pub fn move_client(&self, which: usize) {
        self.far.turn_to(which);
    }

    /// From now on the client sees the server at this one of the relay's ports, counted from 0, and
    /// can reach it only there.
    pub fn move_server(&self, which: usize) {
        self.near.turn_to(which);
    }

    /// The address at which the server sees the client now.
    ///
    /// # Panics
    /// Never: the socket is bound.
    pub fn client_seen_at(&self) -> SocketAddr {
        self.far.in_use.borrow().local_addr().expect("a bound socket has an address")
    }

    /// The address at which the client sees the server now.
    ///
    /// # Panics
    /// Never: the socket is bound.
    pub fn server_seen_at(&self) -> SocketAddr {
        self.near.in_use.borrow().local_addr().expect("a bound socket has an address")
    }

    /// The address for clients before [`Relay::move_server`].
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// From now on all packets are dropped. The rule still sees them.
    pub fn cut(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }

    /// Ends a [`Relay::cut`].
    pub fn restore(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }
}

/// Wraps `rule` to drop all packets while the path is cut.
fn until_cut(is_open: Arc<AtomicBool>, mut rule: impl Rule) -> impl Rule {
    move |from_client, packet: &mut Vec<u8>| {
        let fate = rule(from_client, packet);
        if is_open.load(Ordering::Relaxed) { fate } else { Fate::Drop }
    }
}

async fn relay(
    mut near: watch::Receiver<Arc<UdpSocket>>,
    mut far: watch::Receiver<Arc<UdpSocket>>,
    server: SocketAddr,
    mut rule: impl Rule,
) {
    let mut client = None;
    let (mut a, mut b) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let ends = (near.borrow_and_update().clone(), far.borrow_and_update().clone());
        let (from_client, mut packet) = tokio::select! {
            Ok(()) = near.changed() => continue,
            Ok(()) = far.changed() => continue,
            read = ends.0.recv_from(&mut a) => {
                let Ok((len, from)) = read else { continue };
                client = Some(from);
                (true, a[..len].to_vec())
            }
            read = ends.1.recv_from(&mut b) => {
                // A NAT drops packets from unknown senders.
                let Ok((len, from)) = read else { continue };
                if from != server {
                    continue;
                }
                (false, b[..len].to_vec())
            }
        };
        let Some(client) = client else { continue };
        let fate = rule(from_client, &mut packet);
        let times = if fate == Fate::Twice { 2 } else { 1 };
        let forward = async move {
            for _ in 0..times {
                let _ = match from_client {
                    true => ends.1.send_to(&packet, server).await,
                    false => ends.0.send_to(&packet, client).await,
                };
            }
        };
        match fate {
            Fate::Drop => {}
            Fate::Pass | Fate::Twice => forward.await,
            Fate::Late(by) => {
                tokio::spawn(async move {
                    tokio::time::sleep(by).await;
                    forward.await;
                });
            }
        }
    }
}

/// Forwards every packet.
pub fn pass(_: bool, _: &mut Vec<u8>) -> Fate {
    Fate::Pass
}

/// Drops, delays and duplicates packets at random; the same seed gives the same decisions.
pub fn by_chance(seed: u64, loss: f64, late: f64, twice: f64) -> impl Rule {
    let mut rng: Rng = Seed(seed).stream("relay");
    move |_, _: &mut Vec<u8>| {
        if rng.chance(loss) {
            Fate::Drop
        } else if rng.chance(late) {
            Fate::Late(Duration::from_millis(1 + rng.below(10)))
        } else if rng.chance(twice) {
            Fate::Twice
        } else {
            Fate::Pass
        }
    }
}
