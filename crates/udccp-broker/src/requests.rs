//! Answers programs: each connection carries one request and one reply.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use udccp_preload::protocol::*;

use crate::broker::Broker;
use crate::errno;
use crate::settings::Settings;
use crate::socket::Socket;

/// Time limit for a program to write its request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How often `listen` is retried while its port is in use, and at which interval.
const LISTEN_RETRIES: usize = 5;
const LISTEN_PAUSE: Duration = Duration::from_millis(30);

/// The content of a reply.
#[derive(Default)]
struct Answer {
    value: i32,
    payload: Vec<u8>,
    fd: Option<OwnedFd>,
}

impl Answer {
    fn value(value: i32) -> Self {
        Self { value, ..Self::default() }
    }
}

/// Accepts connections for ever.
pub(crate) async fn serve(broker: &Arc<Broker>, listener: &UnixListener) {
    let mut spare = open_spare_descriptor();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let broker = Arc::clone(broker);
                tokio::spawn(async move { answer_in_time(&broker, stream).await });
            }
            // Usually the process is out of descriptors. With the spare one, requests are answered
            // one at a time: most need no descriptor, and the others get an error.
            Err(_) if spare.is_some() => {
                drop(spare.take());
                if let Ok((stream, _)) = listener.accept().await {
                    answer_in_time(broker, stream).await;
                }
                spare = open_spare_descriptor();
            }
            Err(e) => {
                tracing::warn!("cannot take a request: {e}");
                tokio::time::sleep(Duration::from_millis(20)).await;
                spare = open_spare_descriptor();
            }
        }
    }
}

/// A spare descriptor, closed to accept a request when no other is left.
fn open_spare_descriptor() -> Option<OwnedFd> {
    std::fs::File::open("/dev/null").ok().map(OwnedFd::from)
}

async fn answer_in_time(broker: &Arc<Broker>, stream: UnixStream) {
    if let Ok(Err(e)) = timeout(TIMEOUT, answer(broker, stream)).await {
        tracing::debug!("a request ended early: {e}");
    }
}

async fn answer(broker: &Arc<Broker>, mut stream: UnixStream) -> io::Result<()> {
    let peer = stream.peer_cred()?.uid();
    if peer != rustix::process::geteuid().as_raw() && peer != 0 {
        return Err(io::Error::other("another user's program"));
    }
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).await?;
    let request = match Request::decode(&header) {
        Ok(request) => request,
        Err(_) => {
            // The version in the reply's header tells the reason.
            return reply(&mut stream, Err(Errno::PROTO)).await;
        }
    };
    let mut payload = vec![0; request.len as usize];
    stream.read_exact(&mut payload).await?;
    let mut result = execute(broker, &request, &payload);
    // The system frees a UDP port a moment after its endpoint is dropped.
    for _ in 0..LISTEN_RETRIES {
        if request.op != Op::Listen || !matches!(result, Err(Errno::ADDRINUSE)) {
            break;
        }
        tokio::time::sleep(LISTEN_PAUSE).await;
        result = execute(broker, &request, &payload);
    }
    if let (Op::Listen, Err(_), Some(socket)) = (request.op, &result, broker.find(request.cookie)) {
        socket.unplug();
    }
    reply(&mut stream, result).await
}

async fn reply(stream: &mut UnixStream, result: Result<Answer, Errno>) -> io::Result<()> {
    let (errno, answer) = match result {
        Ok(answer) => (0, answer),
        Err(e) => (errno::of_programs(e).raw_os_error(), Answer::default()),
    };
    let header = Reply { errno, value: answer.value, len: answer.payload.len() as u32 };
    let mut bytes = header.encode().to_vec();
    bytes.extend(answer.payload);
    match answer.fd {
        None => stream.write_all(&bytes).await,
        Some(fd) => {
            stream.writable().await?;
            tracing::trace!("passing descriptor {}", fd.as_raw_fd());
            // A new connection always has room for so few bytes.
            crate::pair::send_with_descriptor(
                &*stream,
                &bytes,
                fd.as_fd(),
                rustix::net::SendFlags::DONTWAIT,
            )?;
            Ok(())
        }
    }
}

fn execute(broker: &Arc<Broker>, request: &Request, payload: &[u8]) -> Result<Answer, Errno> {
    let found = || broker.find(request.cookie).ok_or(Errno::CONNRESET);
    match request.op {
        Op::Region => {
            let fd = broker.region.for_programs().try_clone_to_owned().map_err(errno::of_io)?;
            Ok(Answer { fd: Some(fd), ..Answer::default() })
        }
        Op::Socket => {
            let settings = Settings::parse(&String::from_utf8_lossy(payload));
            let like = broker.find(request.cookie);
            let (socket, fd) = Socket::open(broker, request.a == 10, settings, like.as_deref())?;
            Ok(Answer { value: socket.slot() as i32, fd: Some(fd), ..Answer::default() })
        }
        Op::Attach => {
            let socket = broker.find(request.cookie).ok_or(Errno::NOENT)?;
            Ok(Answer::value(socket.slot() as i32))
        }
        Op::Bind => found()?.bind(payload, request.a != 0).map(|()| Answer::default()),
        Op::Listen => found()?.listen(request.a).map(|()| Answer::default()),
        Op::Connect => Err(found()?.connect(payload)),
        Op::GetOption => {
            let room = if payload.len() == 4 { u32_at(payload, 0) } else { 0 } as usize;
            let (payload, len) = found()?.option(request.a, request.b, room)?;
            Ok(Answer { value: len as i32, payload, fd: None })
        }
        Op::SetOption => {
            let buffer = found()?.set_option(request.a, request.b, payload)?;
            Ok(Answer::value(buffer.unwrap_or(0) as i32))
        }
        Op::TakeError => Ok(Answer::value(found()?.take_error())),
        Op::Shutdown => {
            found()?.shutdown(request.a);
            Ok(Answer::default())
        }
        Op::Disconnect => {
            found()?.disconnect();
            Ok(Answer::default())
        }
        Op::Ring => {
            let (ring, buffer) = found()?.open_ring()?;
            let fd = Some(ring.file().try_clone_to_owned().map_err(errno::of_io)?);
            Ok(Answer { value: buffer as i32, fd, ..Answer::default() })
        }
        Op::Unsent => Ok(Answer::value(found()?.unsent_bytes() as i32)),
    }
}
