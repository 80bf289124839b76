//! The secret of an endpoint makes its sequence numbers unpredictable.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{SERVICE, localhost, run};
use tokio::net::UdpSocket;
use udccp::{Address, Endpoint, Options};

/// The sequence number of the next Request (48 bits, after the generic header's first ten bytes).
async fn request_number(server: &UdpSocket) -> u64 {
    let mut buffer = [0; 2048];
    loop {
        let (len, _) = server.recv_from(&mut buffer).await.unwrap();
        // Type 0 with a long number.
        if len >= 20 && buffer[8] & 0x1f == 1 {
            return buffer[10..16].iter().fold(0, |n, &b| n << 8 | u64::from(b));
        }
    }
}

/// Binds a port that the previous endpoint may still be releasing.
async fn bind(at: SocketAddr) -> Endpoint {
    loop {
        match Endpoint::bind(at) {
            Ok(endpoint) => return endpoint,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

//= 4340-3.1-1 test
#[test]
fn each_endpoint_draws_a_secret_of_its_own_so_that_the_same_ports_begin_with_other_numbers() {
    run(async {
        let server = UdpSocket::bind(localhost(false)).await.unwrap();
        let udp = server.local_addr().unwrap();
        // The same addresses and ports for all, so that only secret and time differ.
        let local = Endpoint::bind(localhost(false)).unwrap().local_addr();
        let options = Options::default().local_port(50_123);
        let mut numbers = Vec::new();
        for _ in 0..4 {
            let endpoint = bind(local).await;
            let peer = Address { udp, port: 5001 };
            tokio::select! {
                number = request_number(&server) => numbers.push(number),
                ended = endpoint.connect(peer, SERVICE, &options) => panic!("{:?}", ended.err()),
            }
        }
        // With the same secret, the upper 24 bits count seconds, and the test lasts at most 300.
        for pair in numbers.windows(2) {
            let apart = (pair[1] >> 24).wrapping_sub(pair[0] >> 24) & 0xff_ffff;
            assert!(apart > 600, "one secret for all: {numbers:x?}");
        }
    });
}
