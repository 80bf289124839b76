//! Many clients of one server: each end has one UDP socket for all of them.
//!
//! ```sh
//! cargo run -p udccp --example many_clients
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::Ipv4Addr;

use udccp::{Endpoint, Listener, Options, ServiceCode};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{} answers", meet(1000).await?);
    Ok(())
}

/// Runs `clients` clients at once. Returns the number of correct answers.
pub async fn meet(clients: u32) -> Result<usize, Box<dyn Error>> {
    let service: ServiceCode = "SC:many".parse()?;
    let options = Options::new().backlog(clients as usize);
    let at = (Ipv4Addr::LOCALHOST, 0).into();
    let listener = Listener::bind_with(at, [service], &options)?;
    let server = listener.local_addr();
    tokio::spawn(async move {
        while let Ok(connection) = listener.accept().await {
            tokio::spawn(async move {
                while let Some(question) = connection.recv().await? {
                    connection.send(question).await?;
                }
                Ok::<_, udccp::Error>(())
            });
        }
    });
    let endpoint = Endpoint::bind(at)?;
    let mut tasks = Vec::new();
    for n in 0..clients {
        let endpoint = endpoint.clone();
        tasks.push(tokio::spawn(async move {
            let connection = endpoint.connect(server, service, &Options::new()).await?;
            connection.send(n.to_be_bytes().to_vec()).await?;
            let answer = connection.recv().await?;
            connection.close().await?;
            Ok::<_, udccp::Error>(answer.as_deref() == Some(&n.to_be_bytes()[..]))
        }));
    }
    let mut right = 0;
    for task in tasks {
        right += usize::from(task.await??);
    }
    Ok(right)
}
