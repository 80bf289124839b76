//! Every state with every packet type, with valid numbers: the next state and the packets sent. One
//! snapshot, readable as a table.

mod common;

use common::Pair;
use common::scenes::{Scene, next_packet, scenes};
use udccp_proto::State;
use udccp_wire::{PacketType, PacketView};

fn types_sent(pair: &mut Pair, from: usize) -> String {
    use udccp_base::Machine;
    let now = pair.now;
    let mut types = Vec::new();
    while let Some(d) = pair.net.ends[from].poll_transmit(now) {
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        let code = view.reset_code().map_or(String::new(), |c| format!("({c})"));
        types.push(format!("{}{code}", view.packet_type()));
    }
    types.join(", ")
}

//= 4340-8.5-1 test
#[test]
fn every_state_with_every_packet_type() {
    use udccp_base::Machine;
    let mut table = String::new();
    for ty in PacketType::ALL {
        for Scene { name, mut pair, target } in scenes() {
            let packet = next_packet(&pair, target, ty);
            let now = pair.now;
            pair.net.ends[target].handle_datagram(now, packet);
            let sent = types_sent(&mut pair, target);
            pair.collect();
            let state = pair.state(target).map_or("-".into(), |s: State| s.to_string());
            let line = format!("{name:17} + {:9}-> {state:9} {sent}", ty.name());
            table += line.trim_end();
            table.push('\n');
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

#[test]
fn the_states_arrows_are_those_of_the_rfc() {
    let mut arrows = String::new();
    for from in State::ALL {
        let to: Vec<String> = from.successors().iter().map(|s| s.to_string()).collect();
        arrows += &format!("{from} -> {}\n", to.join(" "));
    }
    insta::assert_snapshot!(arrows, @r"
    CLOSED -> LISTEN REQUEST
    LISTEN -> CLOSED RESPOND
    REQUEST -> PARTOPEN CLOSED TIMEWAIT
    RESPOND -> OPEN CLOSED TIMEWAIT
    PARTOPEN -> OPEN CLOSING CLOSED TIMEWAIT
    OPEN -> CLOSEREQ CLOSING CLOSED TIMEWAIT
    CLOSEREQ -> CLOSING CLOSED TIMEWAIT
    CLOSING -> CLOSED TIMEWAIT
    TIMEWAIT -> CLOSED
    ");
}
