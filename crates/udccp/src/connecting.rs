//! A handshake under way.

#[cfg(feature = "tokio")]
pub use self::with_tokio::Connecting;

/// What both faces of a handshake have.
macro_rules! connecting_methods {
    ($connection:ty) => {
        pub(crate) fn new(handle: crate::shared::ConnHandle) -> Self {
            Self { inner: Some(handle) }
        }

        fn handle(&self) -> Result<&crate::shared::ConnHandle, crate::Error> {
            self.inner.as_ref().ok_or(crate::Error::Closed)
        }

        /// The connection, once data can flow. After it was given, [`Error::Closed`].
        pub fn poll_connect(
            &mut self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<$connection, crate::Error>> {
            std::task::ready!(self.handle()?.poll_connected(cx.into()))?;
            let handle = self.inner.take().ok_or(crate::Error::Closed)?;
            std::task::Poll::Ready(Ok(<$connection>::new(handle)))
        }

        /// The task with this waker, which called [`Self::poll_connect`], waits no more. Otherwise,
        /// what is known of a task is kept until it is woken.
        pub fn forget_task(&self, waker: &std::task::Waker) {
            self.inner.iter().for_each(|handle| handle.forget_task(waker));
        }

        /// The connection if data can flow now; `None` while the handshake goes on.
        ///
        /// # Errors
        /// Why the handshake failed; [`Error::Closed`](crate::Error::Closed) after the connection
        /// was given.
        pub fn try_connect(&mut self) -> Result<Option<$connection>, crate::Error> {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            match self.poll_connect(&mut cx) {
                std::task::Poll::Ready(connected) => connected.map(Some),
                std::task::Poll::Pending => Ok(None),
            }
        }

        /// A descriptor that is writable once data can flow, and hangs up if the handshake fails.
        /// The connection goes on with the same one.
        ///
        /// # Errors
        /// As [`Connection::readiness`](crate::Connection::readiness).
        #[cfg(unix)]
        pub fn readiness(&self) -> Result<crate::Readiness, crate::Error> {
            self.handle()?.readiness(None).cloned()
        }

        /// Makes `early` the descriptor of [`Self::readiness`]. Where there is one already, that
        /// stays, and `early` hangs up.
        ///
        /// # Errors
        /// [`Error::Closed`](crate::Error::Closed) after the connection was given.
        #[cfg(unix)]
        pub fn show_on(&self, early: crate::EarlyReadiness) -> Result<(), crate::Error> {
            self.handle()?.readiness(Some(early)).map(drop)
        }

        /// State of RFC 4340 section 4.3: REQUEST, then PARTOPEN, where data can flow.
        pub fn state(&self) -> crate::State {
            self.inner.as_ref().map_or(crate::State::Closed, |handle| handle.state())
        }

        /// Our address and ports; `None` after the connection was given.
        pub fn local_addr(&self) -> Option<crate::Address> {
            self.inner.as_ref().map(|handle| handle.local())
        }

        /// The peer's address and ports; `None` after the connection was given.
        pub fn peer_addr(&self) -> Option<crate::Address> {
            self.inner.as_ref().map(|handle| handle.peer())
        }

        /// Gives up; the server learns it by a Reset. The same as dropping it.
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

    /// A connection whose handshake is under way, from
    /// [`Endpoint::start_connect`](crate::Endpoint::start_connect). Await it for the connection;
    /// dropping it cancels the handshake and tells the server by a Reset.
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
