//! Levels and names of options, with Linux's numbers.

pub(super) const SOL_IP: i32 = 0;
pub(super) const SOL_SOCKET: i32 = 1;
pub(super) const SOL_IPV6: i32 = 41;
pub(super) const SOL_DCCP: i32 = 269;

pub(super) const SO_SNDBUF: i32 = 7;
pub(super) const SO_RCVBUF: i32 = 8;
pub(super) const SO_LINGER: i32 = 13;
pub(super) const SO_REUSEADDR: i32 = 2;
pub(super) const SO_REUSEPORT: i32 = 15;
pub(super) const IP_TOS: i32 = 1;
pub(super) const IP_TTL: i32 = 2;
pub(super) const SO_BINDTODEVICE: i32 = 25;
pub(super) const SO_MARK: i32 = 36;
pub(super) const IPV6_UNICAST_HOPS: i32 = 16;
pub(super) const IPV6_V6ONLY: i32 = 26;
pub(super) const IPV6_TCLASS: i32 = 67;

/// Options of SOL_SOCKET that are refused because they would have no effect: filters, forced buffer
/// sizes.
pub(super) const REFUSED: [i32; 8] = [26, 27, 32, 33, 44, 50, 51, 52];
pub(super) const PACKET_SIZE: i32 = 1;
pub(super) const SERVICE: i32 = 2;
pub(super) const CHANGE_L: i32 = 3;
pub(super) const CHANGE_R: i32 = 4;
pub(super) const GET_CUR_MPS: i32 = 5;
pub(super) const SERVER_TIMEWAIT: i32 = 6;
pub(super) const SEND_CSCOV: i32 = 10;
pub(super) const RECV_CSCOV: i32 = 11;
pub(super) const AVAILABLE_CCIDS: i32 = 12;
pub(super) const CCID: i32 = 13;
pub(super) const TX_CCID: i32 = 14;
pub(super) const RX_CCID: i32 = 15;
pub(super) const QPOLICY_ID: i32 = 16;
pub(super) const QPOLICY_TXQLEN: i32 = 17;
pub(super) const CCID_RX_INFO: i32 = 128;
pub(super) const CCID_TX_INFO: i32 = 192;
