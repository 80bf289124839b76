//! A handshake under way.

use std::time::Duration;

use super::{Connection, wait};
use crate::Error;
use crate::connecting::connecting_methods;
use crate::shared::ConnHandle;

/// A connection whose handshake is under way, from [`Endpoint::start_connect`](super::Endpoint).
/// Dropping it cancels the handshake and tells the server by a Reset.
#[derive(Debug)]
#[must_use = "dropping it cancels the handshake"]
pub struct Connecting {
    inner: Option<ConnHandle>,
}

impl Connecting {
    connecting_methods!(Connection);

    /// Waits for the connection, for at most `timeout` if given; the handshake goes on after that,
    /// and the call may be repeated.
    ///
    /// # Errors
    /// Why the handshake failed; [`Error::TimedOut`].
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Connection, Error> {
        wait(timeout, |cx| self.poll_connect(cx))
    }
}
