//! The methods that async and blocking connections share: those that do not wait.

/// Writes these methods for a type whose field `inner` provides a `ConnHandle`.
macro_rules! connection_methods {
    () => {
        /// Sends a message if there is room in the send queue, without waiting.
        ///
        /// # Errors
        /// [`TrySendError::Full`](crate::TrySendError::Full) returns the message;
        /// [`TrySendError::Failed`](crate::TrySendError::Failed) if it can never be sent.
        pub fn try_send(
            &self,
            message: impl Into<crate::Outgoing>,
        ) -> Result<(), crate::TrySendError> {
            self.inner.try_send(message.into())
        }

        /// Receives the next message if there is one, without waiting. The end is an error here; no
        /// bytes are an empty message.
        ///
        /// # Errors
        /// [`TryRecvError::Empty`](crate::TryRecvError::Empty) if there is none;
        /// [`TryRecvError::Ended`](crate::TryRecvError::Ended) at the end of the connection.
        pub fn try_recv(&self) -> Result<bytes::Bytes, crate::TryRecvError> {
            self.inner.try_recv().map(|received| received.data)
        }

        /// As [`Self::try_recv`], with whether the message was damaged on the way.
        ///
        /// # Errors
        /// As [`Self::try_recv`].
        pub fn try_recv_with_meta(&self) -> Result<crate::Received, crate::TryRecvError> {
            self.inner.try_recv()
        }

        /// Receives the messages that are there, at least one and at most `max`, without waiting.
        /// With `max` 0, none.
        ///
        /// # Errors
        /// As [`Self::try_recv`].
        pub fn try_recv_batch(&self, max: usize) -> Result<Vec<bytes::Bytes>, crate::TryRecvError> {
            self.inner.try_recv_batch(max)
        }

        /// As [`Self::try_recv`], copied into `buffer`.
        ///
        /// # Errors
        /// As [`Self::try_recv`].
        pub fn try_recv_into(
            &self,
            buffer: &mut [u8],
        ) -> Result<crate::ReceivedInto, crate::TryRecvError> {
            self.inner.try_recv().map(|received| received.copy_into(buffer))
        }

        /// The message that [`Self::try_recv`] would return, which stays in the queue (`MSG_PEEK`).
        /// The data is not copied.
        ///
        /// # Errors
        /// As [`Self::try_recv`].
        pub fn try_peek(&self) -> Result<bytes::Bytes, crate::TryRecvError> {
            self.inner.try_peek()
        }

        /// Length in bytes of the next message; 0 if it is empty, and `None` if there is none
        /// (`FIONREAD`).
        pub fn next_len(&self) -> Option<usize> {
            self.inner.next_len()
        }

        /// Stops waking the task of this waker, which called a `poll_` method. Without this call,
        /// its waker is kept until it is woken.
        pub fn remove_waker(&self, waker: &std::task::Waker) {
            self.inner.remove_waker(waker);
        }

        /// [`Self::send`] for hand-written futures. If there is room, it takes the message out of
        /// `slot`; otherwise it leaves it there and wakes the task when there is room.
        pub fn poll_send(
            &self,
            cx: &mut std::task::Context<'_>,
            message: &mut Option<crate::Outgoing>,
        ) -> std::task::Poll<Result<(), crate::Error>> {
            self.inner.poll_send(cx.into(), message)
        }

        /// [`Self::recv`] for hand-written futures.
        pub fn poll_recv(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<Option<bytes::Bytes>, crate::Error>> {
            self.inner.poll_recv(cx.into())
        }

        /// [`Self::recv_with_meta`] for hand-written futures.
        pub fn poll_recv_with_meta(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<Option<crate::Received>, crate::Error>> {
            self.inner.poll_recv_with_meta(cx.into())
        }

        /// [`Self::send_batch`] for hand-written futures. It takes messages out of the iterator
        /// while there is room, and wakes the task when there is room again. With
        /// [`QueuePolicy::DropLowest`](crate::QueuePolicy::DropLowest), one message that found no
        /// room may stay in `slot`.
        pub fn poll_send_batch(
            &self,
            cx: &mut std::task::Context<'_>,
            slot: &mut Option<crate::Outgoing>,
            messages: &mut dyn Iterator<Item = crate::Outgoing>,
        ) -> std::task::Poll<Result<(), crate::Error>> {
            self.inner.poll_send_batch(cx.into(), slot, messages)
        }

        /// [`Self::recv_batch`] for hand-written futures.
        pub fn poll_recv_batch(
            &self,
            cx: &mut std::task::Context<'_>,
            into: &mut Vec<bytes::Bytes>,
            max: usize,
        ) -> std::task::Poll<Result<usize, crate::Error>> {
            self.inner.poll_recv_batch(cx.into(), into, max)
        }

        /// [`Self::readable`] for hand-written futures.
        pub fn poll_readable(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), crate::Error>> {
            self.inner.poll_readable(cx.into())
        }

        /// [`Self::writable`] for hand-written futures.
        pub fn poll_writable(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), crate::Error>> {
            self.inner.poll_writable(cx.into())
        }

        /// [`Self::flushed`] for hand-written futures.
        pub fn poll_flushed(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), crate::Error>> {
            self.inner.poll_flushed(cx.into())
        }

        /// [`Self::acknowledged`] for hand-written futures.
        pub fn poll_acknowledged(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), crate::Error>> {
            self.inner.poll_acknowledged(cx.into())
        }

        /// [`Self::close`] for hand-written futures: the first call starts the close.
        pub fn poll_close(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), crate::Error>> {
            self.inner.close();
            self.inner.poll_closed(cx.into())
        }

        /// [`Self::closed`] for hand-written futures.
        pub fn poll_closed(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), crate::Error>> {
            self.inner.poll_ended(cx.into())
        }

        /// [`Self::event`] for hand-written futures.
        pub fn poll_event(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<crate::ConnectionEvent>> {
            self.inner.poll_event(cx.into())
        }

        /// A descriptor for `poll`, `epoll`, `select` and runtimes, which is ready whenever a call
        /// would not wait. It is created by the first call.
        ///
        /// # Errors
        /// [`Error::Io`](crate::Error::Io) if the system has no more descriptors;
        /// [`Error::Forked`](crate::Error::Forked) in a forked child.
        #[cfg(unix)]
        pub fn readiness(&self) -> Result<crate::Readiness, crate::Error> {
            self.inner.readiness(None).cloned()
        }

        /// Starts to close as [`Self::close`] does, without waiting for the end. [`Self::closed`]
        /// waits for it.
        pub fn start_close(&self) {
            self.inner.close();
        }

        /// Sets how long a close may take to deliver what is queued (initially
        /// [`Options::close_linger`](crate::Options::close_linger)). With zero, a close or drop
        /// ends the connection at once with a Reset, as [`Self::abort`] does; this is what
        /// `SO_LINGER` does with zero. A close in progress keeps its time.
        pub fn set_linger(&self, linger: std::time::Duration) {
            self.inner.set_linger(linger);
        }

        /// How long a close may take to deliver what is queued; `None` only in a forked child.
        pub fn linger(&self) -> Option<std::time::Duration> {
            self.inner.linger()
        }

        /// Stops reading: discards what waits to be read, and [`Self::recv`] returns `None`. If the
        /// peer sends more, it is told that nobody reads (Drop Code 1, RFC 4340 section 11.7.2).
        /// Sending is not affected. DCCP has no other half-closed state.
        pub fn shutdown_read(&self) {
            self.inner.shutdown_read();
        }

        /// Asks the peer not to send faster than now (Slow Receiver, RFC 4340 section 11.6), until
        /// it is called with `false`. A receive queue that fills up does so by itself.
        pub fn set_slow_receiver(&self, is_slow: bool) {
            self.inner.set_slow_receiver(is_slow);
        }

        /// Ends the connection at once with a Reset of code Aborted. Queued messages are dropped.
        pub fn abort(&self) {
            self.inner.abort();
        }

        /// Tells that the path to the peer has changed (another network or route with the same
        /// addresses). Congestion control and the search for the path MTU start again (RFC 4340
        /// section 10.5), with the MTU that the interface has now.
        pub fn path_changed(&self) {
            self.inner.path_changed();
        }

        /// The text with which the peer explained its Reset (Error Text, RFC 4340 section 5.6);
        /// `None` if it sent none.
        pub fn reset_text(&self) -> Option<String> {
            self.inner.reset_text()
        }

        /// State, congestion control, queues and counters of the connection; `None` only in a
        /// forked child.
        pub fn stats(&self) -> Option<crate::ConnectionStats> {
            self.inner.stats()
        }

        /// The sender's congestion control state, for the data that we send
        /// (`DCCP_SOCKOPT_CCID_TX_INFO`, for every CCID); `None` before the handshake has chosen a
        /// CCID.
        pub fn sender_state(&self) -> Option<crate::SenderState> {
            self.inner.sender_state()
        }

        /// What our CCID measures of the data that we receive (`DCCP_SOCKOPT_CCID_RX_INFO`); `None`
        /// if it measures nothing, like CCID 2.
        pub fn receiver_state(&self) -> Option<crate::ReceiverState> {
            self.inner.receiver_state()
        }

        /// Limits the send queue, in bytes and messages, both at least 1
        /// (`DCCP_SOCKOPT_QPOLICY_TXQLEN`). Messages that already wait stay, even beyond the limit.
        pub fn set_send_queue(&self, bytes: usize, messages: usize) {
            self.inner.set_send_queue(bytes, messages);
        }

        /// The limits of the send queue, in bytes and messages, and what happens when it is full;
        /// `None` only in a forked child.
        pub fn send_queue(&self) -> Option<(usize, usize, crate::QueuePolicy)> {
            self.inner.send_queue_limits()
        }

        /// Sets what happens when the send queue is full (`DCCP_SOCKOPT_QPOLICY_ID`).
        pub fn set_queue_policy(&self, policy: crate::QueuePolicy) {
            self.inner.set_queue_policy(policy);
        }

        /// Sets whether this server holds TIMEWAIT itself when it closes
        /// (`DCCP_SOCKOPT_SERVER_TIMEWAIT`; RFC 4340 section 8.3). It has no effect at a client.
        pub fn set_server_timewait(&self, holds: bool) {
            self.inner.set_server_timewait(holds);
        }

        /// Whether this server holds TIMEWAIT itself when it closes; `None` only in a forked child.
        pub fn server_timewait(&self) -> Option<bool> {
            self.inner.server_timewait()
        }

        /// Checksum coverage as negotiated: that of the data we send, and the least that we accept,
        /// each 0 to 15; 0 covers everything (RFC 4340 section 9.2). `None` only in a forked child.
        pub fn coverage(&self) -> Option<(u8, u8)> {
            self.inner.coverage()
        }

        /// The state (RFC 4340 section 4.3). [`errno`](crate::errno) says what calls return in
        /// each.
        pub fn state(&self) -> crate::State {
            self.inner.state()
        }

        /// Why the connection ended; `None` while it is open.
        pub fn close_reason(&self) -> Option<crate::CloseReason> {
            self.inner.close_reason()
        }

        /// The service code that client and server agreed on.
        pub fn service_code(&self) -> crate::ServiceCode {
            self.inner.service
        }

        /// The peer's address and ports.
        pub fn peer_addr(&self) -> crate::Address {
            self.inner.peer()
        }

        /// Our address and ports.
        pub fn local_addr(&self) -> crate::Address {
            self.inner.local()
        }

        /// The largest message that fits in one packet of this path now, in bytes; 0 only in a
        /// forked child.
        pub fn max_message_size(&self) -> usize {
            self.inner.max_message_size()
        }
    };
}

/// Implements `AsFd` and `AsRawFd` with the readiness descriptor.
macro_rules! as_fd_by_readiness {
    ($($type:ty: $field:ident),*) => {$(
        /// The descriptor of [`readiness`](Self::readiness), to wait on.
        ///
        /// # Panics
        /// If `readiness` fails. Call that first to get the error.
        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.$field.readiness(None).expect("a descriptor to wait on").as_fd()
            }
        }

        /// The descriptor of [`readiness`](Self::readiness), to wait on.
        ///
        /// # Panics
        /// If `readiness` fails. Call that first to get the error.
        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsFd::as_fd(self).as_raw_fd()
            }
        }
    )*};
}

pub(crate) use {as_fd_by_readiness, connection_methods};
