//! Filters the host's DCCP packets for a raw socket before the kernel copies them.
//!
//! Every raw socket of protocol 33 would receive every DCCP packet of the host, and the traffic of
//! other programs would fill the receive buffer of one that only connects. So an endpoint passes
//! the kernel its few ports as a classic BPF program.

use std::io;

use socket2::Socket;

/// Most ports that fit within the kernel's limit on jumps. An endpoint with more receives every
/// packet and checks itself.
const MAX_PORTS: usize = 200;

/// The packets that a socket wants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'a> {
    /// None yet.
    Nothing,
    /// Those to these DCCP ports.
    Ports(&'a [u16]),
    /// All.
    Everything,
}

/// One instruction: code, jump if true, jump if false, operand.
type Instruction = (u16, u8, u8, u32);

// Classic BPF, as in linux/bpf_common.h.
const LOAD_HALF_AT: u16 = 0x28;
const LOAD_HALF_AT_X: u16 = 0x48;
const LOAD_X_IPV4_HEADER_LEN: u16 = 0xb1;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
/// More than any packet, so that all of it is passed.
const WHOLE: u32 = 0x4_0000;
/// Destination Port in the DCCP header (RFC 4340 section 5.1).
const DESTINATION_PORT: u32 = 2;

/// Attaches the filter.
pub(super) fn attach(socket: &Socket, wanted: Wanted<'_>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let is_ipv4 = socket.domain()? == socket2::Domain::IPV4;
        let program = program(is_ipv4, wanted);
        let filter: Vec<_> = program
            .iter()
            .map(|&(code, t, f, k)| socket2::SockFilter::new(code, t, f, k))
            .collect();
        socket.attach_filter(&filter)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (socket, wanted, program);
        Ok(())
    }
}

/// The program. IPv4 packets begin with their IP header, IPv6 packets without.
fn program(is_ipv4: bool, wanted: Wanted<'_>) -> Vec<Instruction> {
    let ports = match wanted {
        Wanted::Nothing => return vec![(RETURN, 0, 0, 0)],
        Wanted::Ports(ports) if ports.len() <= MAX_PORTS => ports,
        Wanted::Ports(_) | Wanted::Everything => return vec![(RETURN, 0, 0, WHOLE)],
    };
    let mut program = if is_ipv4 {
        vec![(LOAD_X_IPV4_HEADER_LEN, 0, 0, 0), (LOAD_HALF_AT_X, 0, 0, DESTINATION_PORT)]
    } else {
        vec![(LOAD_HALF_AT, 0, 0, DESTINATION_PORT)]
    };
    for (n, &port) in ports.iter().enumerate() {
        // Jumps over the remaining comparisons and the refusal.
        let to_acceptance = (ports.len() - n) as u8;
        program.push((JUMP_IF_EQUAL, to_acceptance, 0, u32::from(port)));
    }
    program.extend([(RETURN, 0, 0, 0), (RETURN, 0, 0, WHOLE)]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets the program, as the kernel would.
    fn run(program: &[Instruction], packet: &[u8]) -> u32 {
        let half = |at: usize| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
        let (mut a, mut x, mut at) = (0, 0, 0);
        loop {
            let (code, t, f, k) = program[at];
            at += 1;
            match code {
                LOAD_X_IPV4_HEADER_LEN => x = usize::from(packet[k as usize] & 15) * 4,
                LOAD_HALF_AT_X => a = half(x + k as usize),
                LOAD_HALF_AT => a = half(k as usize),
                JUMP_IF_EQUAL => at += usize::from(if a == k { t } else { f }),
                RETURN => return k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    #[test]
    fn packets_to_the_ports_pass_and_others_do_not() {
        let ports: Vec<u16> = (50_000..50_000 + MAX_PORTS as u16).collect();
        let v6 = |port: u16| [0, 0, port.to_be_bytes()[0], port.to_be_bytes()[1]];
        let v4 = |port: u16| {
            let mut packet = vec![0x46; 24];
            packet.extend(v6(port));
            packet
        };
        for some in [&ports[..1], &ports[..7], &ports] {
            let [four, six] = [true, false].map(|is_v4| program(is_v4, Wanted::Ports(some)));
            for port in 49_990..50_300 {
                let passes = some.contains(&port);
                assert_eq!(run(&four, &v4(port)) > 0, passes, "IPv4, {port}");
                assert_eq!(run(&six, &v6(port)) > 0, passes, "IPv6, {port}");
            }
        }
    }

    #[test]
    fn too_many_ports_let_all_packets_pass() {
        let ports: Vec<u16> = (0..=MAX_PORTS as u16).collect();
        let all = program(true, Wanted::Ports(&ports));
        assert_eq!(run(&all, &[0; 4]), WHOLE);
        assert_eq!(run(&program(true, Wanted::Nothing), &[0; 4]), 0);
    }
}
