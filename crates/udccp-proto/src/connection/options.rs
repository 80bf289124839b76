//! Reads a packet's options (RFC 4340 section 5.8).

use udccp_base::Duration;
use udccp_wire::{
    MAX_HEADER_LEN, OptionError, OptionRef, PacketType, RawOption, RawOptions, Reaction, ResetCode,
    option_kind,
};

use super::timing::span;
use super::{Connection, Ctx, Received};
use crate::ackvec::DEFAULT_MAX_CELLS;
use crate::features::{FeatureError, PacketContext};
use crate::state::State;

/// First CCID-specific option type from a receiver half to a sender half (section 10.3).
const FIRST_FOR_SENDER: u8 = 192;

/// Longest Ack Vector in several options that is read without an allocation: as long as ours.
pub(super) const MOST_JOINED: usize = DEFAULT_MAX_CELLS;

/// Option data; several options of one kind are joined.
#[derive(Debug, Default)]
pub(super) struct Joined<'a> {
    first: Option<&'a [u8]>,
    all: Vec<u8>,
}

impl<'a> Joined<'a> {
    /// A single option is the normal case and is not copied.
    fn add(&mut self, part: &'a [u8]) {
        let Some(first) = self.first else {
            self.first = Some(part);
            return;
        };
        if self.all.is_empty() {
            // If there are two, there are often more.
            self.all.reserve_exact(MAX_HEADER_LEN);
            self.all.extend_from_slice(first);
        }
        self.all.extend_from_slice(part);
    }

    /// All data in order; `None` if there was no such option.
    pub(super) fn get(&self) -> Option<&[u8]> {
        if self.all.is_empty() { self.first } else { Some(&self.all) }
    }
}

/// Contents of a packet's options that concern acknowledgements and data.
#[derive(Debug, Default)]
pub(super) struct ParsedOptions<'a> {
    /// Ack Vector cells.
    pub(super) cells: Joined<'a>,
    /// Parity of the Ack Vectors' nonce echoes.
    pub(super) nonce_echo: bool,
    /// Data Dropped blocks.
    pub(super) data_dropped: Joined<'a>,
    /// Elapsed Time.
    pub(super) elapsed: Option<Duration>,
    /// Round-trip time measured by a Timestamp Echo.
    pub(super) echo_rtt: Option<Duration>,
    /// Slow Receiver.
    pub(super) slow_receiver: bool,
    /// Whether there were feature negotiation options.
    pub(super) negotiates: bool,
    /// NDP Count, 0 if the option is missing.
    pub(super) ndp_count: u64,
    /// Data Checksum.
    pub(super) data_checksum: Option<u32>,
    /// Options of the peer's receiver half for our sender half.
    pub(super) ccid_options: Vec<u8>,
}

/// What the options of a packet report about our packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckOptions<'a> {
    /// Ack Vector cells.
    pub(super) cells: Option<&'a [u8]>,
    /// Parity of the Ack Vectors' nonce echoes.
    pub(super) nonce_echo: bool,
    /// Data Dropped blocks.
    pub(super) data_dropped: &'a [u8],
    /// Elapsed Time.
    pub(super) elapsed: Option<Duration>,
    /// Round-trip time measured by a Timestamp Echo.
    pub(super) echo_rtt: Option<Duration>,
    /// Slow Receiver.
    pub(super) slow_receiver: bool,
    /// Options of the peer's receiver half for our sender half.
    pub(super) ccid_options: &'a [u8],
}

impl<'a> AckOptions<'a> {
    /// Reads options that consist of an Ack Vector, optionally an Elapsed Time, and padding, as in
    /// most acknowledgements. Returns `None` for any others.
    #[inline]
    pub(super) fn usual(bytes: &'a [u8]) -> Option<Self> {
        let (&[kind, len], rest) = bytes.split_first_chunk()?;
        let nonce_echo = kind == option_kind::ACK_VECTOR_1;
        if !nonce_echo && kind != option_kind::ACK_VECTOR_0 || len <= 2 {
            return None;
        }
        let (cells, rest) = rest.split_at_checked(usize::from(len) - 2)?;
        Self::with_elapsed(cells, nonce_echo, rest)
    }

    /// As [`Self::usual`], for an Ack Vector in several options, the first of them full, which are
    /// joined in `room`.
    pub(super) fn usual_of_several(
        bytes: &'a [u8],
        room: &'a mut [u8; MOST_JOINED],
    ) -> Option<Self> {
        let (mut rest, mut nonce_echo, mut joined) = (bytes, false, 0);
        while let Some((&[kind, len], after)) = rest.split_first_chunk() {
            let is_nonce = kind == option_kind::ACK_VECTOR_1;
            if !is_nonce && kind != option_kind::ACK_VECTOR_0 {
                break;
            }
            let (cells, after) = after.split_at_checked(usize::from(len).checked_sub(2)?)?;
            if cells.is_empty() {
                return None;
            }
            room.get_mut(joined..joined + cells.len())?.copy_from_slice(cells);
            (joined, nonce_echo, rest) = (joined + cells.len(), nonce_echo ^ is_nonce, after);
        }
        Self::with_elapsed(room.get(..joined)?, nonce_echo, rest)
    }

    /// Whether these options begin with an Ack Vector that fills its option.
    pub(super) fn begin_full(bytes: &[u8]) -> bool {
        matches!(bytes, [option_kind::ACK_VECTOR_0 | option_kind::ACK_VECTOR_1, 255, ..])
    }

    /// These cells and what follows them; `None` if that is not optionally an Elapsed Time, and
    /// padding.
    #[inline(always)]
    fn with_elapsed(cells: &'a [u8], nonce_echo: bool, mut rest: &[u8]) -> Option<Self> {
        let mut elapsed = None;
        if let &[option_kind::ELAPSED_TIME, 4, high, low, ref after @ ..] = rest {
            elapsed = Some(span(u32::from_be_bytes([0, 0, high, low])));
            rest = after;
        }
        let is_all = rest.iter().all(|&byte| byte == option_kind::PADDING);
        is_all.then_some(Self { cells: Some(cells), nonce_echo, elapsed, ..Self::default() })
    }
}

/// What most senders need of the options of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstCell {
    /// The first cell of the Ack Vector.
    pub(super) first: u8,
    /// Number of its cells.
    pub(super) cells: usize,
    /// Elapsed Time.
    pub(super) elapsed: Option<Duration>,
}

impl FirstCell {
    /// Reads an Ack Vector in one option or several, optionally an Elapsed Time, and padding.
    /// Returns `None` for any other options.
    #[inline(always)]
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let first = *bytes.get(2)?;
        let (mut rest, mut cells) = (bytes, 0);
        while let &[option_kind::ACK_VECTOR_0 | option_kind::ACK_VECTOR_1, len, ..] = rest {
            (rest, cells) =
                (rest.get(usize::from(len)..)?, cells + usize::from(len.checked_sub(2)?));
        }
        if bytes[1] <= 2 || cells == 0 {
            return None;
        }
        let elapsed = AckOptions::with_elapsed(&[], false, rest)?.elapsed;
        Some(Self { first, cells, elapsed })
    }
}

impl ParsedOptions<'_> {
    /// What the options report about our packets.
    pub(super) fn of_ack(&self) -> AckOptions<'_> {
        AckOptions {
            cells: self.cells.get(),
            nonce_echo: self.nonce_echo,
            data_dropped: self.data_dropped.get().unwrap_or_default(),
            elapsed: self.elapsed,
            echo_rtt: self.echo_rtt,
            slow_receiver: self.slow_receiver,
            ccid_options: &self.ccid_options,
        }
    }
}

/// Whether an option was understood and processed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    Yes,
    No,
}

impl Connection {
    /// Processes the options in their order.
    ///
    /// # Errors
    /// The Reset that an option requires.
    pub(super) fn read_options<'a>(
        &mut self,
        ctx: &Ctx<'_>,
        packet: &Received<'a>,
    ) -> Result<ParsedOptions<'a>, FeatureError> {
        let mut parsed = ParsedOptions::default();
        let bytes = packet.view.option_bytes();
        if bytes.is_empty() {
            return Ok(parsed);
        }
        // Mandatory has no meaning on a Data packet (section 5.8.2).
        let on_data = packet.ty == PacketType::Data;
        let mut mandatory = false;
        //= 4340-5.8-3
        //= 4340-5.8-6
        for raw in RawOptions::new(bytes) {
            let raw = match raw {
                Ok(raw) => raw,
                Err(error) if on_data || !is_reset(error, mandatory) => break,
                Err(error) => return Err(reset_of(error, mandatory)),
            };
            let was_mandatory = core::mem::take(&mut mandatory) && !on_data;
            match OptionRef::from_raw(raw) {
                //= 4340-5.8.2-3
                Ok(OptionRef::Padding) => {}
                Ok(OptionRef::Mandatory) if was_mandatory => return Err(misplaced_mandatory()),
                Ok(OptionRef::Mandatory) => mandatory = true,
                Ok(option) => {
                    let done =
                        self.take_option(ctx, packet, &option, was_mandatory, &mut parsed)?;
                    note_ccid_option(packet, raw, &mut parsed);
                    //= 4340-5.8.2-1
                    if done == Done::No && was_mandatory {
                        return Err(not_understood(raw));
                    }
                }
                Err(error) if !on_data && is_reset(error, was_mandatory) => {
                    return Err(reset_of(error, was_mandatory));
                }
                Err(_) => {}
            }
        }
        if mandatory && !on_data {
            return Err(misplaced_mandatory());
        }
        Ok(parsed)
    }

    fn take_option<'a>(
        &mut self,
        ctx: &Ctx<'_>,
        packet: &Received<'_>,
        option: &OptionRef<'a>,
        mandatory: bool,
        parsed: &mut ParsedOptions<'a>,
    ) -> Result<Done, FeatureError> {
        //= 4340-5.8-7
        //= 4340-5.8-8
        //= 4340-11-2
        //= 4340-11.4-3
        //= 4340-11.7-6
        if !option.is_permitted_on(packet.ty) {
            return Ok(Done::No);
        }
        match *option {
            OptionRef::AckVector { nonce, cells } => {
                parsed.cells.add(cells);
                parsed.nonce_echo ^= nonce;
            }
            OptionRef::DataDropped(blocks) => parsed.data_dropped.add(blocks),
            OptionRef::SlowReceiver => parsed.slow_receiver = true,
            OptionRef::NdpCount(n) => parsed.ndp_count = n,
            OptionRef::DataChecksum(sum) => parsed.data_checksum = Some(sum),
            OptionRef::ElapsedTime(units) => parsed.elapsed = Some(span(units)),
            OptionRef::Timestamp(value) => self.timing.owe_echo(ctx.now, value),
            OptionRef::TimestampEcho { timestamp, elapsed } => {
                let elapsed = elapsed.unwrap_or(0);
                parsed.echo_rtt = self.timing.rtt_of_echo(ctx.now, timestamp, elapsed);
            }
            OptionRef::ChangeL { .. }
            | OptionRef::ChangeR { .. }
            | OptionRef::ConfirmL { .. }
            | OptionRef::ConfirmR { .. } => {
                if !core::mem::replace(&mut parsed.negotiates, true) {
                    self.negotiation.begin_packet(packet.seq, self.seq.gsr);
                }
                let (packet_type, seq, ackno) = (packet.ty, packet.seq, packet.ackno);
                let context = PacketContext { packet_type, seq, ackno };
                self.negotiation.on_option(&context, option, mandatory)?;
            }
            OptionRef::InitCookie(cookie) => self.keep_cookie(packet, cookie),
            OptionRef::QuickStartResponse { rate, ttl_diff, nonce } => {
                self.take_quick_start_response(rate, ttl_diff, nonce);
            }
            _ if is_for_sender(packet, option.kind()) && self.cc.reads(option) => {}
            //= 4340-5.8-4
            //= 4340-15-1
            //= 4340-15-2
            //= 4340-15-3
            _ => return Ok(Done::No),
        }
        Ok(Done::Yes)
    }

    /// A client echoes the cookies of the Response that it acknowledges, the newest, until the
    /// handshake is done (section 8.1.4).
    fn keep_cookie(&mut self, packet: &Received<'_>, cookie: &[u8]) {
        //= 4340-8.1.4-2
        if self.is_newest_response(packet) {
            self.handshake.keep_cookie(cookie);
        }
    }

    //= 4340-8.1.4-6
    /// Whether this is the Response that our packets will acknowledge.
    pub(super) fn is_newest_response(&self, packet: &Received<'_>) -> bool {
        packet.ty == PacketType::Response
            && matches!(self.state, State::Request | State::PartOpen)
            && packet.seq == self.seq.gsr
    }
}

/// Whether an option of this type is one of the peer's receiver half to our sender half.
fn is_for_sender(packet: &Received<'_>, kind: u8) -> bool {
    kind >= FIRST_FOR_SENDER && packet.ty.has_ack()
}

//= 4342-8-1
//= 4342-8.6.1-3
/// CCID-specific options of the peer's receiver half are passed unchanged to our sender half.
fn note_ccid_option(packet: &Received<'_>, raw: RawOption<'_>, parsed: &mut ParsedOptions<'_>) {
    if is_for_sender(packet, raw.kind) {
        if parsed.ccid_options.is_empty() {
            // Several follow, and all have room here.
            parsed.ccid_options.reserve_exact(packet.view.option_bytes().len());
        }
        parsed.ccid_options.extend_from_slice(&[raw.kind, raw.data.len() as u8 + 2]);
        parsed.ccid_options.extend_from_slice(raw.data);
    }
}

fn is_reset(error: OptionError, mandatory: bool) -> bool {
    matches!(error.reaction(mandatory), Reaction::Reset { .. })
}

fn reset_of(error: OptionError, mandatory: bool) -> FeatureError {
    let code = if mandatory { ResetCode::MandatoryError } else { ResetCode::OptionError };
    FeatureError { code, data: error.reset_data() }
}

/// Mandatory before Mandatory, or at the end (section 5.8.2).
fn misplaced_mandatory() -> FeatureError {
    FeatureError { code: ResetCode::OptionError, data: [1, 0, 0] }
}

fn not_understood(raw: RawOption<'_>) -> FeatureError {
    let byte = |i: usize| raw.data.get(i).copied().unwrap_or(0);
    FeatureError { code: ResetCode::MandatoryError, data: [raw.kind, byte(0), byte(1)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ack Vector options with these kinds and lengths, an Elapsed Time, and padding.
    fn options(vectors: &[(u8, u8)]) -> (Vec<u8>, Vec<u8>) {
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        for &(kind, len) in vectors {
            let cells: Vec<u8> = (0..len).map(|i| i.wrapping_mul(kind)).collect();
            bytes.extend_from_slice(&[kind, len + 2]);
            bytes.extend_from_slice(&cells);
            all.extend(cells);
        }
        bytes.extend_from_slice(&[option_kind::ELAPSED_TIME, 4, 1, 2, 0, 0]);
        (bytes, all)
    }

    #[test]
    fn an_ack_vector_in_several_options_is_read_as_one() {
        const PLAIN: u8 = option_kind::ACK_VECTOR_0;
        const NONCE: u8 = option_kind::ACK_VECTOR_1;
        for vectors in [&[(PLAIN, 253), (PLAIN, 253)][..], &[(NONCE, 253), (PLAIN, 7)]] {
            let (bytes, all) = options(vectors);
            let mut room = [0; MOST_JOINED];
            assert!(AckOptions::usual(&bytes).is_none() && AckOptions::begin_full(&bytes));
            let read = AckOptions::usual_of_several(&bytes, &mut room).unwrap();
            assert_eq!((read.cells, read.elapsed), (Some(&all[..]), Some(span(0x102))));
            assert_eq!(read.nonce_echo, vectors[0].0 == NONCE);
        }
        for vectors in [&[(PLAIN, 253), (PLAIN, 253), (PLAIN, 1)][..], &[(PLAIN, 253), (PLAIN, 0)]]
        {
            let mut room = [0; MOST_JOINED];
            assert!(AckOptions::usual_of_several(&options(vectors).0, &mut room).is_none());
        }
    }
}
