//! Option type numbers.

/// Padding.
pub const PADDING: u8 = 0;
/// Mandatory.
pub const MANDATORY: u8 = 1;
/// Slow Receiver.
pub const SLOW_RECEIVER: u8 = 2;
/// Change L.
pub const CHANGE_L: u8 = 32;
/// Confirm L.
pub const CONFIRM_L: u8 = 33;
/// Change R.
pub const CHANGE_R: u8 = 34;
/// Confirm R.
pub const CONFIRM_R: u8 = 35;
/// Init Cookie.
pub const INIT_COOKIE: u8 = 36;
/// NDP Count.
pub const NDP_COUNT: u8 = 37;
/// Ack Vector with ECN nonce echo 0.
pub const ACK_VECTOR_0: u8 = 38;
/// Ack Vector with ECN nonce echo 1.
pub const ACK_VECTOR_1: u8 = 39;
/// Data Dropped.
pub const DATA_DROPPED: u8 = 40;
/// Timestamp.
pub const TIMESTAMP: u8 = 41;
/// Timestamp Echo.
pub const TIMESTAMP_ECHO: u8 = 42;
/// Elapsed Time.
pub const ELAPSED_TIME: u8 = 43;
/// Data Checksum.
pub const DATA_CHECKSUM: u8 = 44;
/// Quick-Start Response (RFC 5634).
pub const QUICK_START_RESPONSE: u8 = 45;
/// Loss Event Rate, of CCIDs 3 and 4.
pub const LOSS_EVENT_RATE: u8 = 192;
/// Loss Intervals, of CCIDs 3 and 4.
pub const LOSS_INTERVALS: u8 = 193;
/// Receive Rate, of CCIDs 3 and 4.
pub const RECEIVE_RATE: u8 = 194;
/// Dropped Packets, of CCID 4.
pub const DROPPED_PACKETS: u8 = 195;

/// The option's name in the RFCs; 192 to 195 are named as in CCIDs 3 and 4.
pub const fn name(kind: u8) -> &'static str {
    match kind {
        PADDING => "Padding",
        MANDATORY => "Mandatory",
        SLOW_RECEIVER => "Slow Receiver",
        CHANGE_L => "Change L",
        CONFIRM_L => "Confirm L",
        CHANGE_R => "Change R",
        CONFIRM_R => "Confirm R",
        INIT_COOKIE => "Init Cookie",
        NDP_COUNT => "NDP Count",
        ACK_VECTOR_0 => "Ack Vector [Nonce 0]",
        ACK_VECTOR_1 => "Ack Vector [Nonce 1]",
        DATA_DROPPED => "Data Dropped",
        TIMESTAMP => "Timestamp",
        TIMESTAMP_ECHO => "Timestamp Echo",
        ELAPSED_TIME => "Elapsed Time",
        DATA_CHECKSUM => "Data Checksum",
        QUICK_START_RESPONSE => "Quick-Start Response",
        LOSS_EVENT_RATE => "Loss Event Rate",
        LOSS_INTERVALS => "Loss Intervals",
        RECEIVE_RATE => "Receive Rate",
        DROPPED_PACKETS => "Dropped Packets",
        128..=255 => "CCID-specific",
        _ => "Reserved",
    }
}
