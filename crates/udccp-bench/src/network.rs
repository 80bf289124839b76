//! Creates two hosts with a cable between them, both on one core.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use udccp_netns::{Namespace, Tables, interface};

/// The path between the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Path {
    /// A veth pair, which carries merged packets unsplit.
    Veth,
    /// A veth pair for which the kernel splits merged UDP packets into datagrams.
    VethSegmented,
}

impl Path {
    /// Checks that this machine can create the path.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn check(self) -> Result<(), &'static str> {
        let has_ethtool = || Command::new("ethtool").arg("--version").output().is_ok();
        match self {
            Self::VethSegmented if !has_ethtool() => Err("ethtool (package ethtool) is missing"),
            _ => Ok(()),
        }
    }
}

const CARD: &str = "eth0";
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));

/// A server running in a thread.
#[derive(Debug)]
pub(crate) struct Server<R>(JoinHandle<Result<R>>);

impl<R> Server<R> {
    /// Waits for the server's result.
    ///
    /// # Errors
    /// An error of its job, or a panic.
    pub(crate) fn join(self) -> Result<R> {
        self.0.join().map_err(|_| anyhow!("the server panicked"))?
    }
}

/// A client's host, which the calling thread is in, and a server's host.
#[derive(Debug)]
pub(crate) struct Network {
    server: Namespace,
}

impl Network {
    /// Creates the network and pins this process to core 0.
    ///
    /// # Errors
    /// No permission to create network namespaces, or the kernel's error.
    pub(crate) fn new(path: Path) -> Result<Self> {
        let mut core = CpuSet::new();
        core.set(0)?;
        sched_setaffinity(Pid::from_raw(0), &core).context("choosing the core")?;
        let why = "making network namespaces; run as root, or in `unshare -Urn`";
        let (client, server) = (Namespace::host().context(why)?, Namespace::host().context(why)?);
        client.join(CARD, &server, CARD)?;
        for (host, address) in [(&client, CLIENT), (&server, SERVER)] {
            host.run(move || Tables::open()?.add_address_in(interface(CARD)?, address, 24))?;
            if path == Path::VethSegmented {
                host.run(segment_in_software)?;
            }
        }
        client.enter()?;
        let network = Self { server };
        network.check_connectivity()?;
        Ok(network)
    }

    /// Waits until address resolution is complete, so that no first packet waits for it.
    fn check_connectivity(&self) -> Result<()> {
        let listener = self.server.run(|| TcpListener::bind(Self::server_addr()))?;
        TcpStream::connect(listener.local_addr()?).context("reaching the server's host")?;
        Ok(())
    }

    /// The address for a server to bind: any port of its host.
    pub(crate) fn server_addr() -> SocketAddr {
        SocketAddr::new(SERVER, 0)
    }

    /// The address for a client to bind: any port of its host.
    pub(crate) fn client_addr() -> SocketAddr {
        SocketAddr::new(CLIENT, 0)
    }

    /// Runs a server in a separate thread.
    ///
    /// # Errors
    /// Too many open files.
    pub(crate) fn serve<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<R> + Send + 'static,
    ) -> Result<Server<R>> {
        Ok(Server(self.server.spawn(job)?))
    }
}

fn segment_in_software() -> io::Result<()> {
    let done = Command::new("ethtool")
        .args(["-K", CARD, "tx-udp-segmentation", "off", "tso", "off"])
        .output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}
