//! Both ends of a connection over the loopback interface send in turn, with every CCID. The
//! messages of an end that was silent for long still arrive.

mod common;

use std::time::Duration;

use common::{SERVICE, localhost, number_of, numbered, run};
use udccp::{Connection, Endpoint, EndpointOptions, Options};
use udccp_proto::ccid::CcidRegistry;

/// Messages that one end sends in its turn, each answered by an acknowledgement.
const SPEECH: u32 = 150;

/// A client and a server with this CCID. The endpoints live as long as the connections.
async fn pair(ccid: u8) -> [(Endpoint, Connection); 2] {
    let options = EndpointOptions::new().ccids(CcidRegistry::with_experiments());
    let [near, far] = [(), ()].map(|()| Endpoint::bind_with(localhost(false), &options).unwrap());
    let options = Options::default().ccid(ccid);
    let listener = far.listen(far.local_addr().port(), [SERVICE], &options).unwrap();
    let (connected, accepted) =
        tokio::join!(near.connect(listener.local_addr(), SERVICE, &options), listener.accept());
    [(near, connected.unwrap()), (far, accepted.unwrap())]
}

/// One end sends numbered messages at short intervals, and the other reads all of them.
async fn send_many(from: &Connection, to: &Connection, size: usize) {
    let sending = async {
        for n in 0..SPEECH {
            from.send(numbered(n, size)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let receiving = async {
        for n in 0..SPEECH {
            let message = to.recv().await.unwrap().expect("the connection is open");
            assert_eq!(number_of(&message), n);
        }
    };
    tokio::join!(sending, receiving);
}

async fn take_turns(ccid: u8) {
    let [(_near, client), (_far, server)] = pair(ccid).await;
    assert_eq!(client.stats().unwrap().tx_ccid, Some(ccid));
    client.send(numbered(1, 100)).await.unwrap();
    assert_eq!(number_of(&server.recv().await.unwrap().unwrap()), 1);
    for turn in 0..4 {
        let (from, to) = if turn % 2 == 0 { (&server, &client) } else { (&client, &server) };
        send_many(from, to, 100 + 200 * turn).await;
    }
    client.close().await.unwrap();
}

#[test]
fn ends_that_send_in_turn_deliver_under_every_ccid() {
    run(async {
        let [a, b, c, d, e] = [2, 3, 4, 249, 250].map(take_turns);
        tokio::join!(a, b, c, d, e);
    });
}
