//! A custom event loop with `poll(2)`: it connects, sends and reads without waiting in any call but
//! `poll`. Runs on every Unix.
//!
//! ```sh
//! cargo run -p udccp --example poll
//! ```

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it is a program")]

#[cfg(not(unix))]
fn main() {
    println!("poll is of Unix");
}

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{} echoes", client::run(1000)?);
    Ok(())
}

/// The client, and a server for it.
#[cfg(unix)]
pub mod client {
    use std::error::Error;
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use udccp::blocking::{Connection, Listener};
    use udccp::{Options, ServiceCode, TryRecvError, TrySendError};

    /// Waits for one descriptor.
    fn wait(fd: &impl AsFd, events: PollFlags) -> Result<(), nix::Error> {
        let mut fds = [PollFd::new(fd.as_fd(), events)];
        poll(&mut fds, PollTimeout::NONE).map(drop)
    }

    /// Sends `messages` messages to an echo server on a thread, and counts those that come back.
    pub fn run(messages: usize) -> Result<usize, Box<dyn Error>> {
        let service: ServiceCode = "SC:echo".parse()?;
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), service)?;
        let server = listener.local_addr();
        std::thread::spawn(move || -> Result<(), udccp::Error> {
            let connection = listener.accept()?;
            while let Some(message) = connection.recv()? {
                connection.send(message)?;
            }
            Ok(())
        });

        let mut connecting = Connection::start_connect(server, service, &Options::new())?;
        let handshake = connecting.readiness()?;
        let connection = loop {
            wait(&handshake, PollFlags::POLLOUT)?;
            if let Some(connection) = connecting.try_connect()? {
                break connection;
            }
        };
        let (mut sent, mut echoes) = (0, 0);
        while echoes < messages {
            let room = if sent < messages { PollFlags::POLLOUT } else { PollFlags::empty() };
            wait(&connection, PollFlags::POLLIN | room)?;
            while sent < messages && sent - echoes < 100 {
                match connection.try_send(vec![0; 500]) {
                    Ok(()) => sent += 1,
                    Err(TrySendError::Full(_)) => break,
                    Err(TrySendError::Failed(e)) => return Err(e.into()),
                }
            }
            loop {
                match connection.try_recv() {
                    Ok(_) => echoes += 1,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Ended(e)) => return Err(e.into()),
                }
            }
        }
        Ok(echoes)
    }
}
