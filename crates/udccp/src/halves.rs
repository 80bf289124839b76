//! The two halves of a connection, for two tasks.

use std::io::IoSlice;

use bytes::Bytes;

use crate::{
    Connection, ConnectionEvent, ConnectionStats, Error, Outgoing, Received, ReceivedInto,
    TryRecvError, TrySendError,
};

/// The sending half of a connection. The connection closes when both halves are dropped.
#[derive(Clone, Debug)]
pub struct SendHalf(Connection);

/// The receiving half of a connection. The connection closes when both halves are dropped.
#[derive(Clone, Debug)]
pub struct RecvHalf(Connection);

/// Writes methods that call those of the connection.
macro_rules! forward {
    ($(async $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[doc = concat!("See [`Connection::", stringify!($name), "`] (cancel safety too).")]
        ///
        /// # Errors
        /// As that method.
        pub async fn $name(&self, $($arg: $type),*) -> $result {
            self.0.$name($($arg),*).await
        }
    )*};
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("See [`Connection::", stringify!($name), "`].")]
        ///
        /// # Errors
        /// As that method, if it has any.
        pub fn $name(&self, $($arg: $type),*) $(-> $result)? {
            self.0.$name($($arg),*)
        }
    )*};
}

impl SendHalf {
    pub(crate) fn new(connection: Connection) -> Self {
        Self(connection)
    }

    forward! {
        async send(message: impl Into<Outgoing>) -> Result<(), Error>;
        async send_vectored(pieces: &[IoSlice<'_>]) -> Result<(), Error>;
        async send_batch(messages: impl IntoIterator<Item = impl Into<Outgoing>>)
            -> Result<(), Error>;
        async writable() -> Result<(), Error>;
        async flushed() -> Result<(), Error>;
        async acknowledged() -> Result<(), Error>;
        async close() -> Result<(), Error>;
        async closed() -> Result<(), Error>;
        async event() -> Option<ConnectionEvent>;
    }

    forward! {
        fn try_send(message: impl Into<Outgoing>) -> Result<(), TrySendError>;
        fn start_close();
        fn abort();
        fn max_message_size() -> usize;
        fn stats() -> Option<ConnectionStats>;
    }

    /// The connection itself.
    pub fn connection(&self) -> &Connection {
        &self.0
    }
}

impl RecvHalf {
    pub(crate) fn new(connection: Connection) -> Self {
        Self(connection)
    }

    forward! {
        async recv() -> Result<Option<Bytes>, Error>;
        async recv_with_meta() -> Result<Option<Received>, Error>;
        async recv_into(buffer: &mut [u8]) -> Result<Option<ReceivedInto>, Error>;
        async recv_batch(into: &mut Vec<Bytes>, max: usize) -> Result<usize, Error>;
        async peek() -> Result<Option<Bytes>, Error>;
        async readable() -> Result<(), Error>;
        async closed() -> Result<(), Error>;
    }

    forward! {
        fn try_recv() -> Result<Bytes, TryRecvError>;
        fn try_recv_with_meta() -> Result<Received, TryRecvError>;
        fn try_recv_into(buffer: &mut [u8]) -> Result<ReceivedInto, TryRecvError>;
        fn try_peek() -> Result<Bytes, TryRecvError>;
        fn next_len() -> Option<usize>;
        fn set_slow_receiver(is_slow: bool);
        fn stats() -> Option<ConnectionStats>;
    }

    /// Stops reading, as [`Connection::shutdown_read`] does. The sending half can still send.
    pub fn close(self) {
        self.0.shutdown_read();
    }

    /// The connection itself.
    pub fn connection(&self) -> &Connection {
        &self.0
    }
}
