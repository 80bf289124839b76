//! An echo server and its client in one process, over the loopback interface.
//!
//! ```sh
//! cargo run -p udccp --example echo
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::Ipv4Addr;

use udccp::{Connection, Listener, ServiceCode};

/// Sends words to an echo server. Returns the words that came back.
pub async fn echo(words: &[&'static str]) -> Result<Vec<String>, Box<dyn Error>> {
    let service: ServiceCode = "SC:echo".parse()?;
    // Port 0: the system chooses a free one.
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), service)?;
    let address = listener.local_addr();
    let server = tokio::spawn(async move {
        let connection = listener.accept().await?;
        while let Some(message) = connection.recv().await? {
            connection.send(message).await?;
        }
        connection.close().await
    });

    let connection = Connection::connect(address, service).await?;
    let mut answers = Vec::new();
    for word in words {
        connection.send(*word).await?;
        let answer = connection.recv().await?.ok_or("the server closed the connection")?;
        answers.push(String::from_utf8_lossy(&answer).into_owned());
    }
    // Closing waits until the peer has everything, or until that is known to have failed.
    connection.close().await?;
    server.await??;
    Ok(answers)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for answer in echo(&["congestion", "controlled", "datagrams"]).await? {
        println!("{answer}");
    }
    Ok(())
}
