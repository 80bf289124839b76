//! A chat of two: lines from the terminal are sent while lines from the other side are printed.
//!
//! ```sh
//! cargo run -p udccp --example chat -- listen 127.0.0.1:5004
//! cargo run -p udccp --example chat -- 127.0.0.1:5004
//! ```

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it is a program")]

use std::error::Error;
use std::io::{self, BufRead, Write};

use udccp::blocking::{Connection, Listener};
use udccp::{Options, ServiceCode};

fn main() -> Result<(), Box<dyn Error>> {
    let service: ServiceCode = "SC:chat".parse()?;
    let args: Vec<String> = std::env::args().skip(1).collect();
    let connection = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["listen", at] => Listener::bind(at.parse()?, service)?.accept()?,
        [host] => Connection::connect_host(host, service, &Options::new(), None)?,
        _ => return Err("usage: chat [listen] HOST:PORT".into()),
    };
    println!("connected to {}", connection.peer_addr());
    chat(connection, io::stdin().lock(), io::stdout())
}

/// Sends every line of `ours`, and writes received lines to `theirs`, until one side ends.
pub fn chat(
    connection: Connection,
    ours: impl BufRead,
    mut theirs: impl Write + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let incoming = connection.clone();
    let reader = std::thread::spawn(move || -> io::Result<()> {
        while let Ok(Some(line)) = incoming.recv() {
            theirs.write_all(&line)?;
            theirs.write_all(b"\n")?;
        }
        Ok(())
    });
    for line in ours.lines() {
        connection.send(line?)?;
    }
    connection.close()?;
    reader.join().map_err(|_| "the reader panicked")??;
    Ok(())
}
