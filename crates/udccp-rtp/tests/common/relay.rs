//! A UDP relay between two endpoints that loses, delays and damages packets as told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Drop,
    /// It arrives after those that follow.
    Late(Duration),
}

/// Decides, and may change the bytes.
pub(crate) trait Rule: FnMut(bool, &mut Vec<u8>) -> Fate + Send + 'static {}
impl<F: FnMut(bool, &mut Vec<u8>) -> Fate + Send + 'static> Rule for F {}

pub(crate) struct Relay {
    pub(crate) port: u16,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Relay {
    /// The rule is told whether the packet comes from the client.
    pub(crate) async fn start(server: SocketAddr, rule: impl Rule) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        far.connect(server).await.unwrap();
        let port = near.local_addr().unwrap().port();
        let task = tokio::spawn(relay(Arc::new(near), Arc::new(far), rule));
        Self { port, task }
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
        let (near, far) = (Arc::clone(&near), Arc::clone(&far));
        let forward = async move {
            let _ = match from_client {
                true => far.send(&packet).await,
                false => near.send_to(&packet, client).await,
            };
        };
        match fate {
            Fate::Drop => {}
            Fate::Pass => forward.await,
            Fate::Late(by) => {
                tokio::spawn(async move {
                    tokio::time::sleep(by).await;
                    forward.await;
                });
            }
        }
    }
}
