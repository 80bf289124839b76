//! Relays UDP between two endpoints, and loses, delays, repeats and damages packets by a rule. It
//! can be cut and mended.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::UdpSocket;
use udccp_base::{Rng, Seed};

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It passes.
    Pass,
    /// It is lost.
    Drop,
    /// It arrives twice.
    Twice,
    /// It arrives after those that follow.
    Late(Duration),
}

/// Decides on a packet, and may change its bytes. It is told whether the client sent the packet.
pub trait Rule: FnMut(bool, &mut Vec<u8>) -> Fate + Send + 'static {}
impl<F: FnMut(bool, &mut Vec<u8>) -> Fate + Send + 'static> Rule for F {}

/// A relay on the loopback interface. It ends when it is dropped.
#[derive(Debug)]
pub struct Relay {
    /// The UDP port that clients use in place of the server's.
    pub port: u16,
    is_open: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Relay {
    /// Starts a relay to `server`.
    ///
    /// # Panics
    /// Where the loopback interface has no ports left.
    pub async fn start(server: SocketAddr, rule: impl Rule) -> Self {
        let near =
            UdpSocket::bind("127.0.0.1:0").await.expect("a socket on the loopback interface");
        let far = UdpSocket::bind("127.0.0.1:0").await.expect("a socket on the loopback interface");
        far.connect(server).await.expect("a socket on the loopback interface");
        let port = near.local_addr().expect("a socket on the loopback interface").port();
        let is_open = Arc::new(AtomicBool::new(true));
        let rule = until_cut(Arc::clone(&is_open), rule);
        let task = tokio::spawn(relay(Arc::new(near), Arc::new(far), rule));
        Self { port, is_open, task }
    }

    /// Where clients find it.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// From here on every packet is lost. The rule still sees it.
    pub fn cut(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }

    /// The rule alone decides again.
    pub fn mend(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }
}

/// The same rule for as long as the path is open.
fn until_cut(is_open: Arc<AtomicBool>, mut rule: impl Rule) -> impl Rule {
    move |from_client, packet: &mut Vec<u8>| {
        let fate = rule(from_client, packet);
        if is_open.load(Ordering::Relaxed) { fate } else { Fate::Drop }
    }
}

async fn relay(near: Arc<UdpSocket>, far: Arc<UdpSocket>, mut rule: impl Rule) {
    let mut client = None;
    let (mut a, mut b) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let (from_client, mut packet) = tokio::select! {
            read = near.recv_from(&mut a) => {
                let Ok((len, from)) = read else { continue };
                client = Some(from);
                (true, a[..len].to_vec())
            }
            read = far.recv(&mut b) => {
                let Ok(len) = read else { continue };
                (false, b[..len].to_vec())
            }
        };
        let Some(client) = client else { continue };
        let fate = rule(from_client, &mut packet);
        let times = if fate == Fate::Twice { 2 } else { 1 };
        let (near, far) = (Arc::clone(&near), Arc::clone(&far));
        let forward = async move {
            for _ in 0..times {
                let _ = match from_client {
                    true => far.send(&packet).await,
                    false => near.send_to(&packet, client).await,
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

/// Lets every packet pass.
pub fn pass(_: bool, _: &mut Vec<u8>) -> Fate {
    Fate::Pass
}

/// Loses, delays and repeats packets by chance; the same seed gives the same decisions.
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
