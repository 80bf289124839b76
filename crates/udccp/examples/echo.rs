//! An echo server and its client in one process, over the loopback interface.
//!
//! ```sh
//! cargo run -p udccp --example echo
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::Ipv4Addr;

use udccp::{Connection, Listener, ServiceCode};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
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
    for word in ["congestion", "controlled", "datagrams"] {
        connection.send(word).await?;
        let answer = connection.recv().await?.ok_or("the server closed the connection")?;
        println!("{}", String::from_utf8_lossy(&answer));
    }
    // Closing waits until the peer has what was sent, or until it is known that it has not.
    connection.close().await?;
    server.await??;
    Ok(())
}
