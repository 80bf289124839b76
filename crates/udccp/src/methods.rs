//! The methods that async and blocking connections share: everything that does not wait.

/// Writes them, for a type with a field `inner` that leads to a `ConnHandle`.
macro_rules! connection_methods {
    () => {
        /// Sends a message if there is room now.
        ///
        /// # Errors
        /// [`TrySendError::Full`](crate::TrySendError::Full) gives the message back.
        pub fn try_send(
            &self,
            message: impl Into<crate::Outgoing>,
        ) -> Result<(), crate::TrySendError> {
            self.inner.try_send(message.into())
        }

        /// The next message if there is one now. An empty message is one of no bytes; the end is an
        /// error here.
        ///
        /// # Errors
        /// [`TryRecvError::Empty`](crate::TryRecvError::Empty), or the end of the connection.
        pub fn try_recv(&self) -> Result<bytes::Bytes, crate::TryRecvError> {
            self.inner.try_recv().map(|received| received.data)
        }

        /// As [`Self::try_recv`], with what is known of the message.
        ///
        /// # Errors
        /// As [`Self::try_recv`].
        pub fn try_recv_with_meta(&self) -> Result<crate::Received, crate::TryRecvError> {
            self.inner.try_recv()
        }

        /// The messages that are there now, up to `max` and at least one; none only for a `max` of
        /// 0.
        ///
        /// # Errors
        /// As [`Self::try_recv`].
        pub fn try_recv_batch(&self, max: usize) -> Result<Vec<bytes::Bytes>, crate::TryRecvError> {
            self.inner.try_recv_batch(max)
        }

        /// As [`Self::try_recv`], into a buffer of yours.
        ///
        /// # Errors
        /// As [`Self::try_recv`].
        pub fn try_recv_into(
            &self,
            buffer: &mut [u8],
        ) -> Result<crate::ReceivedInto, crate::TryRecvError> {
            self.inner.try_recv().map(|received| received.copy_into(buffer))
        }

        /// The message that [`Self::try_recv`] would give, which stays (`MSG_PEEK`). Nothing is
        /// copied.
        ///
        /// # Errors
        /// As [`Self::try_recv`].
        pub fn try_peek(&self) -> Result<bytes::Bytes, crate::TryRecvError> {
            self.inner.try_peek()
        }

        /// Length in bytes of the next message, if one waits (`FIONREAD`). 0 is an empty message.
        pub fn next_len(&self) -> Option<usize> {
            self.inner.next_len()
        }

        /// The task with this waker, which called a `poll_` method, waits no more for anything.
        /// Otherwise, what is known of a task is kept until it is woken.
        pub fn forget_task(&self, waker: &std::task::Waker) {
            self.inner.forget_task(waker);
        }

        /// [`Self::send`] for hand-written futures: queues the message and leaves `None`, or leaves
        /// it and wakes the task when there is room.
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

        /// [`Self::send_batch`] for hand-written futures: takes messages out of the iterator as
        /// long as there is room, and wakes the task when there is more. Where messages displace
        /// each other ([`QueuePolicy::DropLowest`](crate::QueuePolicy::DropLowest)), one that
        /// found no room may wait in `slot`.
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
        /// would not wait. Costs nothing until it is asked for.
        ///
        /// # Errors
        /// The system has no more descriptors; the connection belongs to the parent of this
        /// process.
        #[cfg(unix)]
        pub fn readiness(&self) -> Result<crate::Readiness, crate::Error> {
            self.inner.readiness(None).cloned()
        }

        /// Starts what [`Self::close`] does and does not wait for it. [`Self::closed`] does.
        pub fn start_close(&self) {
            self.inner.close();
        }

        /// Sets the time that a close may take to deliver what is queued, from now on (at first
        /// [`Options::close_linger`](crate::Options::close_linger)). With zero, a close or drop
        /// ends the connection at once with a Reset, as [`Self::abort`] does; so does `SO_LINGER`.
        /// A close that is under way keeps its time.
        pub fn set_linger(&self, linger: std::time::Duration) {
            self.inner.set_linger(linger);
        }

        /// The time that a close may take to deliver what is queued; `None` after the end.
        pub fn linger(&self) -> Option<std::time::Duration> {
            self.inner.linger()
        }

        /// Reads no more: what waits is thrown away, [`Self::recv`] gives `None`, and the peer is
        /// told when it sends on (Drop Code 1, RFC 4340 section 11.7.2). Sending goes on. This is
        /// all that DCCP has of a half-closed connection.
        pub fn shutdown_read(&self) {
            self.inner.shutdown_read();
        }

        /// Asks the peer not to go faster (Slow Receiver, RFC 4340 section 11.6), until taken back.
        /// A receive queue that fills does so by itself.
        pub fn set_slow_receiver(&self, is_slow: bool) {
            self.inner.set_slow_receiver(is_slow);
        }

        /// Ends the connection at once with Reset, Aborted. Queued messages are dropped.
        pub fn abort(&self) {
            self.inner.abort();
        }

        /// The path to the peer is another one now (another network or route under the same
        /// addresses): congestion control and the search for the path's MTU begin again (RFC 4340
        /// section 10.5), with what the interface takes now.
        pub fn path_changed(&self) {
            self.inner.path_changed();
        }

        /// What the peer said in words when it reset the connection (the Error Text of RFC 4340
        /// section 5.6); `None` where it said nothing.
        pub fn reset_text(&self) -> Option<String> {
            self.inner.reset_text()
        }

        /// Everything that can be said about the connection in numbers; `None` only in a forked
        /// child.
        pub fn stats(&self) -> Option<crate::ConnectionStats> {
            self.inner.stats()
        }

        /// What congestion control knows of the data that we send (`DCCP_SOCKOPT_CCID_TX_INFO`, for
        /// every CCID); `None` before the handshake has chosen one.
        pub fn sender_state(&self) -> Option<crate::SenderState> {
            self.inner.sender_state()
        }

        /// What congestion control measures of the data that we receive
        /// (`DCCP_SOCKOPT_CCID_RX_INFO`); `None` where the CCID measures nothing, as CCID 2.
        pub fn receiver_state(&self) -> Option<crate::ReceiverState> {
            self.inner.receiver_state()
        }

        /// Sets what may wait to be sent, in bytes and messages, at least one of each
        /// (`DCCP_SOCKOPT_QPOLICY_TXQLEN`). What waits beyond stays.
        pub fn set_send_queue(&self, bytes: usize, messages: usize) {
            self.inner.set_send_queue(bytes, messages);
        }

        /// What may wait to be sent, in bytes and messages, and what a full queue does; `None` only
        /// in a forked child.
        pub fn send_queue(&self) -> Option<(usize, usize, crate::QueuePolicy)> {
            self.inner.send_queue_limits()
        }

        /// Sets what a full send queue does (`DCCP_SOCKOPT_QPOLICY_ID`).
        pub fn set_queue_policy(&self, policy: crate::QueuePolicy) {
            self.inner.set_queue_policy(policy);
        }

        /// Sets whether this server holds TIMEWAIT itself when it closes
        /// (`DCCP_SOCKOPT_SERVER_TIMEWAIT`; RFC 4340 section 8.3); clients always may.
        pub fn set_server_timewait(&self, holds: bool) {
            self.inner.set_server_timewait(holds);
        }

        /// Whether this server holds TIMEWAIT itself when it closes; `None` only in a forked child.
        pub fn server_timewait(&self) -> Option<bool> {
            self.inner.server_timewait()
        }

        /// Checksum coverage of the data that we send, as far as the peer accepts it, and the least
        /// that we accept, as agreed; both 0 to 15, 0 is everything (RFC 4340 section 9.2).
        pub fn coverage(&self) -> Option<(u8, u8)> {
            self.inner.coverage()
        }

        /// State of RFC 4340 section 4.3. [`errno`](crate::errno) has what calls give in it.
        pub fn state(&self) -> crate::State {
            self.inner.state()
        }

        /// Why the connection ended; `None` while it has not.
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

        /// The largest message in bytes that fits in one packet of this path now.
        pub fn max_message_size(&self) -> usize {
            self.inner.max_message_size()
        }
    };
}

/// Implements `AsFd` and `AsRawFd` by the readiness descriptor.
macro_rules! as_fd_by_readiness {
    ($($type:ty: $field:ident),*) => {$(
        /// The descriptor of [`readiness`](Self::readiness), to wait on.
        ///
        /// # Panics
        /// Where `readiness` fails: call that first to see an error.
        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.$field.readiness(None).expect("a descriptor to wait on").as_fd()
            }
        }

        /// The descriptor of [`readiness`](Self::readiness), to wait on.
        ///
        /// # Panics
        /// Where `readiness` fails: call that first to see an error.
        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsFd::as_fd(self).as_raw_fd()
            }
        }
    )*};
}

pub(crate) use {as_fd_by_readiness, connection_methods};
