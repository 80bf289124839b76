//! Names that only one program of a host can have at a time: bound Unix sockets. Abstract names are
//! per network namespace, like ports. Binding is atomic, and names are released however the process
//! ends. Only Linux has them, and only on Linux is there DCCP over raw IP here.

/// Whether this kernel's own DCCP is loaded, which is possible before Linux 6.16. It then answers
/// for the host, with a Reset to every packet that does not belong to one of its connections.
pub fn kernel_has_dccp() -> bool {
    std::fs::read_to_string("/proc/net/protocols")
        .is_ok_and(|list| list.lines().any(|line| line.starts_with("DCCP")))
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    /// A name that is ours until this is dropped.
    #[derive(Debug)]
    pub(in crate::io) struct Name {
        _bound: UnixDatagram,
    }

    impl Name {
        /// Takes a name; `AddrInUse` if another program has it.
        pub(in crate::io) fn take(name: &str) -> io::Result<Self> {
            let name = SocketAddr::from_abstract_name(name)?;
            Ok(Self { _bound: UnixDatagram::bind_addr(&name)? })
        }
    }

    /// Checks whether names are taken.
    #[derive(Debug)]
    pub(in crate::io) struct Asker(UnixDatagram);

    impl Asker {
        pub(in crate::io) fn new() -> io::Result<Self> {
            UnixDatagram::unbound().map(Self)
        }

        /// Whether any program has this name. Checking does not take it.
        pub(in crate::io) fn is_taken(&self, name: &str) -> io::Result<bool> {
            match self.0.connect_addr(&SocketAddr::from_abstract_name(name)?) {
                Ok(()) => Ok(true),
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
                Err(e) => Err(e),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    #[derive(Debug)]
    pub(in crate::io) enum Name {}

    impl Name {
        pub(in crate::io) fn take(_: &str) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    #[derive(Debug)]
    pub(in crate::io) enum Asker {}

    impl Asker {
        pub(in crate::io) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(in crate::io) fn is_taken(&self, _: &str) -> io::Result<bool> {
            match *self {}
        }
    }
}

pub(super) use system::{Asker, Name};
