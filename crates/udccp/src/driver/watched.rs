//! A handle of the socket on which the runtime waits. All reading and writing uses another handle.

#[cfg(unix)]
pub(super) use unix::Watched;
#[cfg(windows)]
pub(super) use windows::Watched;

#[cfg(unix)]
mod unix {
    use std::io;

    use socket2::Socket;
    use tokio::io::unix::AsyncFd;
    use tokio::io::{Interest, Ready};

    use crate::process::Process;

    /// When a forked child drops its copy of the runtime, the handle must not remove the socket
    /// from the poller, which the parent shares.
    pub(in crate::driver) struct Watched {
        socket: Option<AsyncFd<Socket>>,
        process: Process,
    }

    impl Watched {
        #[expect(deprecated, reason = "without unsafe; a socket's descriptor never changes")]
        pub(in crate::driver) fn new(socket: &Socket, interest: Interest) -> io::Result<Self> {
            let socket = AsyncFd::with_interest(socket.try_clone()?, interest)?;
            Ok(Self { socket: Some(socket), process: Process::current() })
        }

        fn socket(&self) -> &AsyncFd<Socket> {
            self.socket.as_ref().expect("it is there until the drop")
        }

        /// Calls `read` unless nothing has arrived. After a read that returns `WouldBlock`, the
        /// next wait is for later arrivals.
        pub(in crate::driver) fn try_read<T>(
            &self,
            read: impl FnOnce() -> io::Result<T>,
        ) -> io::Result<T> {
            self.socket().try_io(Interest::READABLE, |_| read())
        }

        /// Waits for arriving packets or an error. Returns whether it is an error.
        pub(in crate::driver) async fn readable(&self) -> bool {
            match self.socket().ready(Interest::READABLE | Interest::ERROR).await {
                Ok(mut guard) => {
                    let has_error = guard.ready().is_error();
                    if has_error {
                        guard.clear_ready_matching(Ready::ERROR);
                    }
                    has_error
                }
                Err(_) => true,
            }
        }

        /// Waits for room to write. Returns whether there surely is some.
        pub(in crate::driver) async fn writable(&self) -> bool {
            let Ok(mut guard) = self.socket().writable().await else { return false };
            let is_sure = !guard.ready().is_write_closed();
            guard.clear_ready();
            is_sure
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            if !self.process.is_current() {
                std::mem::forget(self.socket.take());
            }
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::io;

    use socket2::Socket;
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    pub(in crate::driver) struct Watched(UdpSocket);

    impl Watched {
        pub(in crate::driver) fn new(socket: &Socket, _: Interest) -> io::Result<Self> {
            UdpSocket::from_std(socket.try_clone()?.into()).map(Self)
        }

        /// Calls `read` unless nothing has arrived. After a read that returns `WouldBlock`, the
        /// next wait is for later arrivals.
        pub(in crate::driver) fn try_read<T>(
            &self,
            read: impl FnOnce() -> io::Result<T>,
        ) -> io::Result<T> {
            self.0.try_io(Interest::READABLE, read)
        }

        /// Waits for arriving packets or an error.
        pub(in crate::driver) async fn readable(&self) -> bool {
            self.0.readable().await.is_err()
        }

        /// Waits for room to write. Returns whether there surely is some.
        pub(in crate::driver) async fn writable(&self) -> bool {
            let Ok(ready) = self.0.ready(Interest::WRITABLE).await else { return false };
            // The next wait is for a later event.
            let _ =
                self.0.try_io::<()>(Interest::WRITABLE, || Err(io::ErrorKind::WouldBlock.into()));
            !ready.is_write_closed()
        }
    }
}
