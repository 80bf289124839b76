//! Captures the packets at the client's interface in a pcap file.

use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use socket2::{Domain, Protocol, Socket, Type};
use udccp_netns::Namespace;
use udccp_packet::ip::LinkType;
use udccp_packet::pcap::Writer;

/// ETH_P_ALL in network byte order, as packet sockets expect it.
const EVERYTHING: i32 = 0x0003_u16.to_be() as i32;
const BUFFER_BYTES: usize = 32 << 20;

/// A running capture.
#[derive(Debug)]
pub(crate) struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Capture {
    /// Starts a capture that keeps at most `snaplen` bytes of each packet.
    pub(crate) fn start(host: &Namespace, file: &Path, snaplen: usize) -> io::Result<Self> {
        let file = BufWriter::new(File::create(file)?);
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let (tell, hear) = std::sync::mpsc::channel();
        let thread = host.spawn(move || {
            let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(EVERYTHING)))?;
            socket.set_read_timeout(Some(Duration::from_millis(20)))?;
            let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
            let _ = tell.send(());
            record(&socket, file, snaplen, &told)
        })?;
        let _ = hear.recv();
        Ok(Self { stop, thread })
    }

    /// Stops the capture.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| io::Error::other("a capture panicked"))?
    }
}

fn record(
    mut socket: &Socket,
    file: BufWriter<File>,
    snaplen: usize,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut writer = Writer::new(file, LinkType::Ethernet, snaplen as u32)?;
    let mut frame = vec![0; 65_536];
    loop {
        match socket.read(&mut frame) {
            Ok(len) => writer.packet(now_ns(), &[&frame[..len]], 0)?,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                if stop.load(Ordering::Relaxed) {
                    return writer.flush();
                }
            }
            Err(e) => return Err(e),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a capture has the time of each packet")]
fn now_ns() -> u64 {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)
}
