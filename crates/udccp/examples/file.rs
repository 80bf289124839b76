//! A file in numbered pieces. DCCP does not retransmit, so the receiver requests missing pieces.
//!
//! ```sh
//! cargo run -p udccp --example file -- FROM TO
//! ```

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it is a program")]

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use udccp::ServiceCode;
use udccp::blocking::{Connection, Listener};

/// Bytes of the file in one message.
const PIECE: usize = 1000;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = &args[..] else { return Err("usage: file FROM TO".into()) };
    let data = copy(std::fs::read(from)?)?;
    std::fs::write(to, &data)?;
    println!("{} bytes", data.len());
    Ok(())
}

/// Sends `data` over the loopback interface, and returns what arrived.
pub fn copy(data: Vec<u8>) -> Outcome<Vec<u8>> {
    let service: ServiceCode = "SC:file".parse()?;
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), service)?;
    let sender = Connection::connect(listener.local_addr(), service)?;
    let receiver = listener.accept()?;
    let len = data.len();
    let sending = std::thread::spawn(move || send(&sender, &data));
    let received = receive(&receiver, len)?;
    sending.join().map_err(|_| "the sender panicked")??;
    Ok(received)
}

/// Sends every piece, and again those that the receiver requests, until it closes.
fn send(connection: &Connection, data: &[u8]) -> Outcome<()> {
    let piece = |n: usize| {
        let mut message = (n as u32).to_be_bytes().to_vec();
        message.extend_from_slice(data.chunks(PIECE).nth(n).unwrap_or_default());
        message
    };
    connection.send_batch((0..data.len().div_ceil(PIECE)).map(piece))?;
    while let Some(wanted) = connection.recv()? {
        for n in wanted.chunks_exact(4) {
            connection.send(piece(u32::from_be_bytes(n.try_into()?) as usize))?;
        }
    }
    Ok(())
}

/// Stores received pieces, and requests missing ones when nothing has arrived for a while.
fn receive(connection: &Connection, len: usize) -> Outcome<Vec<u8>> {
    connection.set_read_timeout(Some(Duration::from_millis(200)));
    let mut data = vec![0; len];
    let mut missing = vec![true; len.div_ceil(PIECE)];
    while missing.contains(&true) {
        match connection.recv() {
            Ok(Some(message)) => {
                let (number, bytes) = message.split_at(4);
                let n = u32::from_be_bytes(number.try_into()?) as usize;
                data[n * PIECE..n * PIECE + bytes.len()].copy_from_slice(bytes);
                missing[n] = false;
            }
            Ok(None) => return Err("the sender closed too early".into()),
            Err(udccp::Error::TimedOut) => {
                let wanted = (0..missing.len()).filter(|&n| missing[n]).take(200);
                let wanted: Vec<u8> = wanted.flat_map(|n| (n as u32).to_be_bytes()).collect();
                connection.send(wanted)?;
            }
            Err(e) => return Err(e.into()),
        }
    }
    connection.close()?;
    Ok(data)
}
