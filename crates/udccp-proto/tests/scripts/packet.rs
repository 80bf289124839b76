//! A packet as written in a script.

use udccp_base::Ecn;
use udccp_wire::{PacketType, ResetCode, ServiceCode};

use crate::error::ScriptError;
use crate::options::OptionList;
use crate::tokens::{Number, Token, Tokens, hex, number, whole};

const TYPES: [&str; 11] = [
    "Request", "Response", "Data", "Ack", "DataAck", "CloseReq", "Close", "Reset", "Sync",
    "SyncAck", "Listen",
];

const FIELDS: [&str; 18] = [
    "seq", "ack", "service", "code", "data1", "data2", "data3", "ccval", "cscov", "short", "ecn",
    "data", "checksum", "type", "offset", "cut", "sport", "dport",
];

const CODES: [&str; 13] = [
    "Unspecified",
    "Closed",
    "Aborted",
    "NoConnection",
    "PacketError",
    "OptionError",
    "MandatoryError",
    "ConnectionRefused",
    "BadServiceCode",
    "TooBusy",
    "BadInitCookie",
    "AggressionPenalty",
    "EncapsulatedPortReuse",
];

/// Application data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Text(Vec<u8>),
    /// This many zero bytes to send, or this many bytes of any value to match.
    Length(usize),
}

/// The fields of a packet in a script. Missing ones are filled in, or not compared.
#[derive(Clone, Debug)]
pub(crate) struct PacketTemplate {
    pub(crate) ty: PacketType,
    pub(crate) seq: Option<Number>,
    pub(crate) ack: Option<Number>,
    pub(crate) service: Option<ServiceCode>,
    pub(crate) code: Option<ResetCode>,
    pub(crate) reset_data: [Option<Number>; 3],
    pub(crate) ccval: Option<Number>,
    pub(crate) cscov: Option<Number>,
    pub(crate) short: Option<bool>,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) data: Option<Data>,
    pub(crate) options: Option<OptionList>,
    pub(crate) sport: Option<u16>,
    pub(crate) dport: Option<u16>,
    /// Sent with a wrong checksum.
    pub(crate) bad_checksum: bool,
    /// Sent with this type number.
    pub(crate) type_number: Option<u8>,
    /// Sent with this Data Offset.
    pub(crate) offset: Option<u8>,
    /// Sent without this many bytes at its end.
    pub(crate) cut: usize,
    /// Sent by an attacker: the peer's own numbers do not advance.
    pub(crate) forged: bool,
}

impl PacketTemplate {
    /// Parses the text after the direction.
    pub(crate) fn parse(t: &mut Tokens) -> Result<Self, ScriptError> {
        let forged = t.take_word("forged");
        let name = t.word("a packet type")?;
        let ty = PacketType::ALL.into_iter().find(|ty| ty.name() == name);
        let ty = ty.ok_or_else(|| ScriptError::unknown(t.line, "packet type", &name, &TYPES))?;
        let mut packet = Self {
            ty,
            seq: None,
            ack: None,
            service: None,
            code: None,
            reset_data: [None, None, None],
            ccval: None,
            cscov: None,
            short: None,
            ecn: None,
            data: None,
            options: None,
            sport: None,
            dport: None,
            bad_checksum: false,
            type_number: None,
            offset: None,
            cut: 0,
            forged,
        };
        while !t.is_done() {
            if t.take('<') {
                packet.options = Some(OptionList::parse(t)?);
            } else {
                let field = t.word("a field, or options in <>")?;
                t.expect('=')?;
                packet.field(t, &field)?;
            }
        }
        Ok(packet)
    }

    fn field(&mut self, t: &mut Tokens, field: &str) -> Result<(), ScriptError> {
        match field {
            "seq" => self.seq = Some(number(t)?),
            "ack" => self.ack = Some(number(t)?),
            "service" => self.service = Some(service(t)?),
            "code" => self.code = Some(code(t)?),
            "data1" => self.reset_data[0] = Some(number(t)?),
            "data2" => self.reset_data[1] = Some(number(t)?),
            "data3" => self.reset_data[2] = Some(number(t)?),
            "ccval" => self.ccval = Some(number(t)?),
            "cscov" => self.cscov = Some(number(t)?),
            "short" => self.short = Some(choice(t, &["no", "yes"])? == 1),
            "ecn" => {
                self.ecn = Some(Ecn::from_bits(choice(t, &["no", "ECT1", "ECT0", "CE"])? as u8))
            }
            "data" => self.data = Some(data(t)?),
            "checksum" => self.bad_checksum = choice(t, &["right", "wrong"])? == 1,
            "type" => self.type_number = Some(small(t)?),
            "offset" => self.offset = Some(small(t)?),
            "cut" => self.cut = usize::from(small::<u16>(t)?),
            "sport" => self.sport = Some(small(t)?),
            "dport" => self.dport = Some(small(t)?),
            other => return Err(ScriptError::unknown(t.line, "field", other, &FIELDS)),
        }
        Ok(())
    }
}

/// Parses one of several words; returns its index.
pub(crate) fn choice(t: &mut Tokens, known: &[&str]) -> Result<usize, ScriptError> {
    let word = t.word(&format!("one of {}", known.join(", ")))?;
    let place = known.iter().position(|k| *k == word);
    place.ok_or_else(|| ScriptError::unknown(t.line, "value", &word, known))
}

/// Parses a number that fits.
pub(crate) fn small<T: TryFrom<i128>>(t: &mut Tokens) -> Result<T, ScriptError> {
    let word = t.word("a number")?;
    let value = whole(&word).ok_or_else(|| t.error(format!("{word:?} is no number")))?;
    T::try_from(value).map_err(|_| t.error(format!("{value} is too large here")))
}

/// `SC:fdpz`, `SC=42` or a number.
pub(crate) fn service(t: &mut Tokens) -> Result<ServiceCode, ScriptError> {
    let mut word = t.word("a service code")?;
    if t.take('=') {
        word = format!("{word}={}", t.word("a number")?);
    }
    if let Some(n) = whole(&word).and_then(|n| u32::try_from(n).ok()) {
        return Ok(ServiceCode(n));
    }
    word.parse().map_err(|e| t.error(format!("service code {word:?}: {e}")))
}

/// A Reset Code, by its name without spaces or by its number.
fn code(t: &mut Tokens) -> Result<ResetCode, ScriptError> {
    let word = t.word("a Reset Code")?;
    if let Some(n) = whole(&word).and_then(|n| u8::try_from(n).ok()) {
        return Ok(ResetCode::from_number(n));
    }
    let place = CODES.iter().position(|c| *c == word);
    let place = place.ok_or_else(|| ScriptError::unknown(t.line, "Reset Code", &word, &CODES))?;
    Ok(ResetCode::from_number(place as u8))
}

/// `"text"`, `0xbytes` or a length.
pub(crate) fn data(t: &mut Tokens) -> Result<Data, ScriptError> {
    match t.next() {
        Some(Token::Text(text)) => Ok(Data::Text(text.into_bytes())),
        Some(Token::Word(word)) if word.starts_with("0x") => {
            let bytes = hex(&word).ok_or_else(|| t.error(format!("{word:?} is no hex data")))?;
            Ok(Data::Text(bytes))
        }
        Some(Token::Word(word)) => {
            let len = whole(&word).and_then(|n| usize::try_from(n).ok());
            let error = || t.error(format!("{word:?} is no length"));
            len.filter(|n| *n <= 65_535).map(Data::Length).ok_or_else(error)
        }
        _ => Err(t.error("data as \"text\", 0x... or a length was expected")),
    }
}
