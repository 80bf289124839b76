//! Interoperability with OpenSSL, through a relay between UDP and DCCP. Skips with a message if the
//! program `openssl` is missing.

mod common;

use std::process::Stdio;

use common::{SERVICE, localhost, run};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UdpSocket;
use tokio::process::{Child, Command};
use udccp::{Connection, Listener};
use udccp_dtls::{DtlsConnection, DtlsOptions, Identity, Version};

/// Relays: each DCCP message is one UDP datagram.
async fn relay(udp: UdpSocket, dccp: Connection) {
    let mut buffer = vec![0; 65_536];
    loop {
        tokio::select! {
            read = udp.recv(&mut buffer) => {
                // Refused while OpenSSL is starting: DTLS retransmits.
                let Ok(len) = read else { continue };
                if dccp.send(buffer[..len].to_vec()).await.is_err() {
                    return;
                }
            }
            message = dccp.recv() => {
                let Ok(Some(message)) = message else { return };
                let _ = udp.send(&message).await;
            }
        }
    }
}

#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn openssl(args: &[&str]) -> Option<Child> {
    let child = Command::new("openssl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    if child.is_err() {
        eprintln!("skipped: there is no program openssl");
    }
    child.ok()
}

/// Exchanges a line in each direction.
async fn exchange(child: &mut Child, connection: &DtlsConnection) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    connection.send("from udccp\n").await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("from udccp"));
    child.stdin.as_mut().unwrap().write_all(b"from openssl\n").await.unwrap();
    let heard = connection.recv().await.unwrap();
    assert_eq!(heard.as_deref(), Some(&b"from openssl\n"[..]));
}

#[test]
fn a_server_of_openssl_is_understood() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let identity = Identity::self_signed("openssl.example").unwrap();
        std::fs::write(&certificate, identity.certificate_pem()).unwrap();
        std::fs::write(&key, identity.key_pem()).unwrap();
        let port = udccp_testkit::ports::free();
        let accept = format!("127.0.0.1:{port}");
        let args = ["s_server", "-dtls1_2", "-quiet", "-accept", &accept];
        let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
        let Some(mut child) = openssl(&[&args[..], &["-cert", certificate, "-key", key]].concat())
        else {
            return;
        };
        let listener = Listener::bind(localhost(), SERVICE).unwrap();
        let address = listener.local_addr();
        tokio::spawn(async move {
            let dccp = listener.accept().await.unwrap();
            let udp = UdpSocket::bind(localhost()).await.unwrap();
            udp.connect(("127.0.0.1", port)).await.unwrap();
            relay(udp, dccp).await;
        });
        let dccp = Connection::connect(address, SERVICE).await.unwrap();
        let soon = std::time::Duration::from_millis(200);
        let options = DtlsOptions::new().pin(identity.fingerprint()).flight_timeout(soon);
        let connection = DtlsConnection::client(dccp, &options).await.unwrap();
        assert_eq!(connection.version(), Version::Dtls12, "OpenSSL has no DTLS 1.3");
        exchange(&mut child, &connection).await;
    });
}

#[test]
fn a_client_of_openssl_is_served() {
    run(async {
        let udp = UdpSocket::bind(localhost()).await.unwrap();
        let target = udp.local_addr().unwrap().to_string();
        let args = ["s_client", "-dtls1_2", "-quiet", "-connect", &target];
        let Some(mut child) = openssl(&args) else { return };
        let listener = Listener::bind(localhost(), SERVICE).unwrap();
        let address = listener.local_addr();
        tokio::spawn(async move {
            let client = udp.peek_sender().await.unwrap();
            udp.connect(client).await.unwrap();
            relay(udp, Connection::connect(address, SERVICE).await.unwrap()).await;
        });
        let identity = Identity::self_signed("udccp.example").unwrap();
        let options = DtlsOptions::new().identity(identity);
        let dccp = listener.accept().await.unwrap();
        let connection = DtlsConnection::server(dccp, &options).await.unwrap();
        assert_eq!(connection.version(), Version::Dtls12);
        exchange(&mut child, &connection).await;
    });
}
