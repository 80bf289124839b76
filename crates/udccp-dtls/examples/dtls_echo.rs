//! An echo over DTLS, server and client in one process: the client pins the server's certificate.
//!
//! ```sh
//! cargo run -p udccp-dtls --example dtls_echo
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::Ipv4Addr;

use udccp::{Connection, Listener, ServiceCode};
use udccp_dtls::{DtlsConnection, DtlsOptions, Identity};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // RFC 5238 section 3.6: the protected use of a service has a code of its own.
    let service: ServiceCode = "SC:echs".parse()?;
    let identity = Identity::self_signed("echo.example")?;
    let fingerprint = identity.fingerprint();
    println!("the server's fingerprint: {fingerprint}");

    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), service)?;
    let address = listener.local_addr();
    let server = tokio::spawn(async move {
        let options = DtlsOptions::new().identity(identity);
        let connection = DtlsConnection::server(listener.accept().await?, &options).await?;
        while let Some(message) = connection.recv().await? {
            connection.send(message).await?;
        }
        connection.close().await
    });

    let connection = Connection::connect(address, service).await?;
    let options = DtlsOptions::new().pin(fingerprint);
    let connection = DtlsConnection::client(connection, &options).await?;
    connection.send("protected").await?;
    let answer = connection.recv().await?.ok_or("the server closed the connection")?;
    println!("{}", String::from_utf8_lossy(&answer));
    connection.close().await?;
    server.await??;
    Ok(())
}
