//! TIMEWAIT: tuples that cannot be used for a while, of which anyone can create many.

use udccp_base::Duration;
use udccp_proto::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, ListenerId, State};

use crate::common::pair::PORT;
use crate::common::{CLIENT, Net, SERVER, connect_options, listen_config};

/// What the server's application does with its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Application {
    Releases,
    Holds,
    NeverAccepts,
}

fn server(config: EndpointConfig) -> (Net, ListenerId) {
    let mut net = Net::new(12);
    net.ends[SERVER] = Endpoint::new(config);
    let config = listen_config(ConnectionConfig::default());
    let listener = net.ends[SERVER].listen(None, PORT, config).unwrap();
    (net, listener)
}

fn connect(net: &mut Net) -> ConnectionId {
    let options = connect_options(ConnectionConfig::default());
    let id = net.ends[CLIENT].connect(net.now, options).unwrap();
    net.run(Duration::from_millis(100));
    id
}

/// A client that connects and resets at once.
fn connect_and_abort(net: &mut Net, listener: ListenerId, application: Application) {
    let id = connect(net);
    assert_eq!(net.ends[CLIENT].state(id), Some(State::Open), "{application:?}");
    let now = net.now;
    net.ends[CLIENT].abort(now, id);
    net.ends[CLIENT].release(now, id);
    net.run(Duration::from_millis(100));
    if application != Application::NeverAccepts {
        let accepted = net.ends[SERVER].accept(listener).unwrap();
        assert_eq!(net.ends[SERVER].state(accepted), Some(State::TimeWait));
        if application == Application::Releases {
            let now = net.now;
            net.ends[SERVER].release(now, accepted);
            net.drain();
        }
    }
}

#[test]
fn eight_clients_that_connect_and_reset_do_not_keep_a_ninth_out() {
    use Application::{Holds, NeverAccepts, Releases};
    for application in [Releases, Holds, NeverAccepts] {
        let config = EndpointConfig { max_connections: 8, ..EndpointConfig::new([7; 32]) };
        let (mut net, listener) = server(config);
        for _ in 0..8 {
            connect_and_abort(&mut net, listener, application);
        }
        let stats = net.ends[SERVER].endpoint_stats();
        assert_eq!((stats.connections, stats.timewaits), (0, 8), "{application:?}");
        let ninth = connect(&mut net);
        assert_eq!(net.ends[CLIENT].state(ninth), Some(State::Open), "{application:?}");
        assert_eq!(net.ends[SERVER].endpoint_stats().too_busy, 0);
    }
}
