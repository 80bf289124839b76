//! A handshake in progress.

use std::time::Duration;

use super::{Connection, wait};
use crate::Error;
use crate::connecting::connecting_methods;
use crate::shared::ConnHandle;

/// A handshake in progress, from [`Endpoint::start_connect`](super::Endpoint). Dropping it cancels
/// the handshake and sends the server a Reset.
#[derive(Debug)]
#[must_use = "dropping it cancels the handshake"]
pub struct Connecting {
    inner: Option<ConnHandle>,
}

impl Connecting {
    connecting_methods!(Connection);

    /// Waits for the connection, for at most `timeout` if given. After a timeout the handshake goes
    /// on, and the call can be repeated.
    ///
    /// # Errors
    /// Why the handshake failed; [`Error::TimedOut`]; [`Error::Closed`] if the connection was
    /// returned before.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Connection, Error> {
        wait(timeout, |cx| self.poll_connect(cx))
    }
}
