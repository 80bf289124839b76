//! An echo server that uses only `epoll`, without a runtime or threads of its own. The listener and
//! each connection have a descriptor that is ready whenever a call would not wait.
//!
//! ```sh
//! cargo run -p udccp --example epoll -- 127.0.0.1:5004
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("epoll is Linux's; the example `poll` runs on every Unix");
}

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    let at = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:5004".into());
    let at = at.parse().map_err(std::io::Error::other)?;
    let service = "SC:echo".parse().map_err(std::io::Error::other)?;
    let listener = udccp::blocking::Listener::bind(at, service)?;
    println!("echo server at {}", listener.local_addr());
    server::serve(&listener, usize::MAX).map(drop)
}

/// The server.
#[cfg(target_os = "linux")]
pub mod server {
    use std::collections::HashMap;
    use std::io;
    use std::os::fd::AsRawFd;

    use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
    use udccp::blocking::{Connection, Listener};
    use udccp::{Outgoing, TryRecvError, TrySendError};

    /// A client, and the messages not yet sent back to it.
    struct Client {
        connection: Connection,
        waiting: Option<Outgoing>,
    }

    /// Counts of the clients served.
    #[derive(Debug, Default)]
    pub struct Served {
        /// Clients that connected and left.
        pub clients: usize,
        /// Most clients at the same time.
        pub most: usize,
        /// Messages sent back.
        pub messages: u64,
    }

    /// Serves clients until `until` of them have come and gone.
    ///
    /// # Errors
    /// An error of `epoll` or of the listener.
    pub fn serve(listener: &Listener, until: usize) -> io::Result<Served> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        // Descriptors are the keys. That of the listener stays valid as long as the loop runs.
        let door = listener.as_raw_fd() as u64;
        epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, door))?;
        let mut clients: HashMap<u64, Client> = HashMap::new();
        let mut served = Served::default();
        let mut events = vec![EpollEvent::empty(); 256];
        while served.clients < until {
            let count = match epoll.wait(&mut events, EpollTimeout::NONE) {
                Err(nix::errno::Errno::EINTR) => 0,
                other => other?,
            };
            for event in &events[..count] {
                if event.data() == door {
                    while let Some(connection) = listener.try_accept()? {
                        let key = connection.as_raw_fd() as u64;
                        epoll.add(&connection, EpollEvent::new(EpollFlags::EPOLLIN, key))?;
                        clients.insert(key, Client { connection, waiting: None });
                    }
                    served.most = served.most.max(clients.len());
                } else if let Some(client) = clients.get_mut(&event.data()) {
                    let was_stuck = client.waiting.is_some();
                    if !echo(client, &mut served.messages) {
                        // This closes its descriptor, which removes it from the epoll too.
                        clients.remove(&event.data());
                        served.clients += 1;
                    } else if client.waiting.is_some() != was_stuck {
                        let stuck = client.waiting.is_some();
                        let wish = if stuck { EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
                        let mut wish = EpollEvent::new(wish, event.data());
                        epoll.modify(&client.connection, &mut wish)?;
                    }
                }
            }
        }
        Ok(served)
    }

    /// Sends waiting messages back, as far as there is room. Returns whether the client is still
    /// open.
    fn echo(client: &mut Client, messages: &mut u64) -> bool {
        loop {
            let message = match client.waiting.take() {
                Some(message) => message,
                None => match client.connection.try_recv() {
                    Ok(message) => message.into(),
                    Err(TryRecvError::Empty) => return true,
                    Err(TryRecvError::Ended(_)) => return false,
                },
            };
            match client.connection.try_send(message) {
                Ok(()) => *messages += 1,
                Err(TrySendError::Full(message)) => {
                    client.waiting = Some(message);
                    return true;
                }
                Err(TrySendError::Failed(_)) => return false,
            }
        }
    }
}
