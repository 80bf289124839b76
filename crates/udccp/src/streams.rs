//! Connections as `Stream` and `Sink` of the `futures` crates.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;

use crate::coop;
use crate::{Connection, Error, Outgoing, RecvHalf, SendHalf, TrySendError};

impl Stream for Connection {
    type Item = Result<Bytes, Error>;

    /// Receives the next message; `None` after an orderly close.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        coop::counted(cx, |cx| self.poll_recv(cx)).map(Result::transpose)
    }
}

impl Stream for RecvHalf {
    type Item = Result<Bytes, Error>;

    /// Receives the next message; `None` after an orderly close.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        coop::counted(cx, |cx| self.connection().poll_recv(cx)).map(Result::transpose)
    }
}

/// A connection as a [`Sink`] of messages, from [`SendHalf::into_sink`]. Flushing waits until the
/// send queue is empty; closing closes the connection.
#[derive(Debug)]
pub struct MessageSink {
    half: SendHalf,
    /// A message for which `poll_ready` found room that another handle of the connection used
    /// since.
    waiting: Option<Outgoing>,
}

impl SendHalf {
    /// This half as a [`Sink`].
    pub fn into_sink(self) -> MessageSink {
        MessageSink { half: self, waiting: None }
    }
}

impl MessageSink {
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.half.connection().poll_send(cx, &mut self.waiting)
    }
}

impl<T: Into<Outgoing>> Sink<T> for MessageSink {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        ready!(self.poll_waiting(cx))?;
        coop::counted(cx, |cx| self.half.connection().poll_writable(cx))
    }

    fn start_send(mut self: Pin<&mut Self>, message: T) -> Result<(), Error> {
        match self.half.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(message)) => {
                self.waiting = Some(message);
                Ok(())
            }
            Err(TrySendError::Failed(e)) => Err(e),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        ready!(self.poll_waiting(cx))?;
        self.half.connection().poll_flushed(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        ready!(self.poll_waiting(cx))?;
        self.half.connection().poll_close(cx)
    }
}
