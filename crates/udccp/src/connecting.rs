//! A handshake in progress.

#[cfg(feature = "tokio")]
pub use self::with_tokio::Connecting;

/// The methods that the async and the blocking type share.
macro_rules! connecting_methods {
    ($connection:ty) => {
        pub(crate) fn new(handle: crate::shared::ConnHandle) -> Self {
            Self { inner: Some(handle) }
        }

        fn handle(&self) -> Result<&crate::shared::ConnHandle, crate::Error> {
            self.inner.as_ref().ok_or(crate::Error::Closed)
        }

        /// Polls for the connection, which is ready once data can flow. After it was returned,
        /// [`Error::Closed`].
        pub fn poll_connect(
            &mut self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<$connection, crate::Error>> {
            std::task::ready!(self.handle()?.poll_connected(cx.into()))?;
            let handle = self.inner.take().ok_or(crate::Error::Closed)?;
            std::task::Poll::Ready(Ok(<$connection>::new(handle)))
        }

        /// Stops waking the task of this waker, which called [`Self::poll_connect`]. Without this
        /// call, its waker is kept until it is woken.
        pub fn remove_waker(&self, waker: &std::task::Waker) {
            self.inner.iter().for_each(|handle| handle.remove_waker(waker));
        }

        /// Returns the connection if data can flow, and `None` while the handshake continues.
        ///
        /// # Errors
        /// Why the handshake failed; [`Error::Closed`](crate::Error::Closed) if the connection was
        /// returned before.
        pub fn try_connect(&mut self) -> Result<Option<$connection>, crate::Error> {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            match self.poll_connect(&mut cx) {
                std::task::Poll::Ready(connected) => connected.map(Some),
                std::task::Poll::Pending => Ok(None),
            }
        }

        /// A descriptor that becomes writable once data can flow, and hangs up if the handshake
        /// fails. The connection keeps the same descriptor.
        ///
        /// # Errors
        /// As [`Connection::readiness`](crate::Connection::readiness).
        #[cfg(unix)]
        pub fn readiness(&self) -> Result<crate::Readiness, crate::Error> {
            self.handle()?.readiness(None).cloned()
        }

        /// Makes `early` the descriptor that [`Self::readiness`] returns. If there is one already,
        /// it stays, and `early` hangs up.
        ///
        /// # Errors
        /// [`Error::Closed`](crate::Error::Closed) if the connection was returned before.
        #[cfg(unix)]
        pub fn set_readiness(&self, early: crate::EarlyReadiness) -> Result<(), crate::Error> {
            self.handle()?.readiness(Some(early)).map(drop)
        }

        /// The state (RFC 4340 section 4.3): REQUEST until the server has answered, then PARTOPEN,
        /// in which data can flow; CLOSED if the handshake failed or the connection was returned.
        pub fn state(&self) -> crate::State {
            self.inner.as_ref().map_or(crate::State::Closed, |handle| handle.state())
        }

        /// Our address and ports; `None` after the connection was returned.
        pub fn local_addr(&self) -> Option<crate::Address> {
            self.inner.as_ref().map(|handle| handle.local())
        }

        /// The peer's address and ports; `None` after the connection was returned.
        pub fn peer_addr(&self) -> Option<crate::Address> {
            self.inner.as_ref().map(|handle| handle.peer())
        }

        /// Cancels the handshake and sends the server a Reset, as dropping this does.
        pub fn cancel(self) {}
    };
}

pub(crate) use connecting_methods;

#[cfg(feature = "tokio")]
mod with_tokio {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use crate::shared::ConnHandle;
    use crate::{Connection, Error};

    /// A handshake in progress, from [`Endpoint::start_connect`](crate::Endpoint::start_connect).
    /// Await it to get the connection. Dropping it cancels the handshake and sends the server a
    /// Reset.
    #[derive(Debug)]
    #[must_use = "dropping it cancels the handshake"]
    pub struct Connecting {
        inner: Option<ConnHandle>,
    }

    impl Connecting {
        connecting_methods!(Connection);
    }

    impl Future for Connecting {
        type Output = Result<Connection, Error>;

        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            self.get_mut().poll_connect(cx)
        }
    }
}
