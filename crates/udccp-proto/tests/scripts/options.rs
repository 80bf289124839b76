//! Options as written in a script: to be sent, or to be matched.

use udccp_wire::{
    FeatureNumber, LossInterval, OptionRef, OptionValue, Reconciliation, option_kind as kind,
};

use crate::error::ScriptError;
use crate::tokens::{Number, Token, Tokens, hex, number, whole};
use crate::variables::Variables;

const NAMES: [(&str, u8); 20] = [
    ("Padding", kind::PADDING),
    ("Mandatory", kind::MANDATORY),
    ("Slow Receiver", kind::SLOW_RECEIVER),
    ("Change L", kind::CHANGE_L),
    ("Confirm L", kind::CONFIRM_L),
    ("Change R", kind::CHANGE_R),
    ("Confirm R", kind::CONFIRM_R),
    ("Init Cookie", kind::INIT_COOKIE),
    ("NDP Count", kind::NDP_COUNT),
    ("Ack Vector", kind::ACK_VECTOR_0),
    ("Data Dropped", kind::DATA_DROPPED),
    ("Timestamp", kind::TIMESTAMP),
    ("Timestamp Echo", kind::TIMESTAMP_ECHO),
    ("Elapsed Time", kind::ELAPSED_TIME),
    ("Data Checksum", kind::DATA_CHECKSUM),
    ("Loss Event Rate", kind::LOSS_EVENT_RATE),
    ("Loss Intervals", kind::LOSS_INTERVALS),
    ("Receive Rate", kind::RECEIVE_RATE),
    ("Dropped Packets", kind::DROPPED_PACKETS),
    ("Option", 255),
];

const FEATURES: [(&str, u8); 10] = [
    ("CCID", 1),
    ("Allow Short Seqnos", 2),
    ("Sequence Window", 3),
    ("ECN Incapable", 4),
    ("Ack Ratio", 5),
    ("Send Ack Vector", 6),
    ("Send NDP Count", 7),
    ("Minimum Checksum Coverage", 8),
    ("Check Data Checksum", 9),
    ("Send Loss Event Rate", 192),
];

/// Names of Drop Codes, and 255 for a Normal Block.
const BLOCKS: [(&str, u8); 9] = [
    ("normal", 255),
    ("constraints", 0),
    ("not-listening", 1),
    ("buffer", 2),
    ("corrupt", 3),
    ("code4", 4),
    ("code5", 5),
    ("code6", 6),
    ("delivered-corrupt", 7),
];

/// The content of an option.
#[derive(Clone, Debug)]
enum Content {
    /// Anything.
    Any,
    /// These bytes.
    Bytes(Vec<u8>),
    /// Any content that starts with these bytes.
    Begins(Vec<u8>),
    /// These numbers.
    Numbers(Vec<Number>),
    /// Runs of an Ack Vector, newest first: the upper two bits and the length.
    Runs { nonce: Option<bool>, runs: Vec<(u8, u64)> },
}

/// An option.
#[derive(Clone, Debug)]
pub(crate) struct OptionTemplate {
    kind: u8,
    content: Content,
}

/// The options of a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionList {
    pub(crate) wanted: Vec<OptionTemplate>,
    /// Types that must not be present.
    refused: Vec<u8>,
    /// Whether others may be present (`...`).
    open: bool,
}

impl OptionList {
    /// Parses the text after `<`, including the closing `>`.
    pub(crate) fn parse(t: &mut Tokens) -> Result<Self, ScriptError> {
        let mut list = Self::default();
        while !t.take('>') {
            if t.take_others() {
                list.open = true;
            } else if t.take_word("no") {
                list.refused.push(name(t)?.0);
            } else {
                list.wanted.push(OptionTemplate::parse(t)?);
            }
            if !t.take(',') && t.peek() != Some(&Token::Sign('>')) {
                return Err(t.wanted("',' or '>'"));
            }
        }
        list.open |= !list.refused.is_empty() && list.wanted.is_empty();
        Ok(list)
    }

    /// The first difference between these options and the script; `None` if there is none.
    pub(crate) fn mismatch(&self, there: &[OptionValue], v: &mut Variables) -> Option<String> {
        let there: Vec<_> = there.iter().filter(|o| o.kind != kind::PADDING).collect();
        if let Some(bad) = there.iter().find(|o| self.refused.contains(&same(o.kind))) {
            return Some(format!("{} must not be there", text(bad)));
        }
        let mut rest = there.as_slice();
        for wanted in &self.wanted {
            let place = rest.iter().position(|o| wanted.is(o, v));
            let Some(place) = place.filter(|p| self.open || *p == 0) else {
                let found = rest.first().map_or("nothing more".to_owned(), |o| text(o));
                let name = option_name(wanted.kind);
                return Some(format!("option {name} is not as written (there: {found})"));
            };
            rest = &rest[place + 1..];
        }
        let too_many = rest.first().filter(|_| !self.open)?;
        Some(format!("{} was not expected", text(too_many)))
    }
}

fn text(option: &OptionValue) -> String {
    option.as_ref().map_or_else(|e| e.to_string(), |o| o.to_string())
}

/// Ack Vectors differ only in their nonce echo, so their types count as equal.
fn same(kind: u8) -> u8 {
    if kind == kind::ACK_VECTOR_1 { kind::ACK_VECTOR_0 } else { kind }
}

fn option_name(number: u8) -> String {
    let found = NAMES.iter().find(|(_, n)| *n == number && number != 255);
    found.map_or_else(|| format!("Option {number}"), |(name, _)| (*name).to_owned())
}

/// Reads words as long as they form a known name, and takes the longest.
fn longest(t: &mut Tokens, what: &str, known: &[(&str, u8)]) -> Result<u8, ScriptError> {
    let start = t.clone();
    let (mut so_far, mut best) = (String::new(), None);
    while let Some(Token::Word(word)) = t.peek() {
        so_far = if so_far.is_empty() { word.clone() } else { format!("{so_far} {word}") };
        t.next();
        if let Some((_, n)) = known.iter().find(|(name, _)| *name == so_far) {
            best = Some((*n, t.clone()));
        }
    }
    let Some((number, after)) = best else {
        if so_far.is_empty() {
            return Err(start.wanted(&format!("the name of {what}")));
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        return Err(ScriptError::unknown(t.line, what, &so_far, &names));
    };
    *t = after;
    Ok(number)
}

/// The option's type, and whether it was given as a number.
fn name(t: &mut Tokens) -> Result<(u8, bool), ScriptError> {
    let number = longest(t, "option", &NAMES)?;
    if number != 255 {
        return Ok((number, false));
    }
    let word = t.word("an option type")?;
    let number = whole(&word).and_then(|n| u8::try_from(n).ok());
    number
        .map(|n| (n, true))
        .ok_or_else(|| t.error(format!("{word:?} is no option type, 0 to 255")))
}

fn feature(t: &mut Tokens) -> Result<FeatureNumber, ScriptError> {
    if let Some(Token::Word(word)) = t.peek()
        && let Some(n) = whole(word).and_then(|n| u8::try_from(n).ok())
    {
        t.next();
        return Ok(FeatureNumber(n));
    }
    longest(t, "feature", &FEATURES).map(FeatureNumber)
}

impl OptionTemplate {
    fn parse(t: &mut Tokens) -> Result<Self, ScriptError> {
        let (kind, is_raw) = name(t)?;
        if !t.take('(') {
            return Ok(Self { kind, content: Content::Bytes(Vec::new()) });
        }
        if t.take('*') && t.take(')') {
            return Ok(Self { kind, content: Content::Any });
        }
        let content = match kind {
            _ if is_raw => Content::Bytes(bytes(t)?),
            kind::CHANGE_L..=kind::CONFIRM_R => {
                let data = feature_bytes(t)?;
                if t.take('*') { Content::Begins(data) } else { Content::Bytes(data) }
            }
            kind::ACK_VECTOR_0 => runs(t)?,
            kind::DATA_DROPPED => Content::Bytes(blocks(t)?),
            kind::INIT_COOKIE => Content::Bytes(bytes(t)?),
            _ => Content::Numbers(numbers(t)?),
        };
        t.expect(')')?;
        Ok(Self { kind, content })
    }

    /// The option as sent.
    pub(crate) fn value(&self, v: &Variables) -> Result<OptionValue, String> {
        Ok(match &self.content {
            Content::Any | Content::Begins(_) => {
                return Err("an option that is sent needs a value".into());
            }
            Content::Bytes(data) => OptionValue { kind: self.kind, data: data.clone() },
            Content::Runs { nonce, runs } => {
                let mut cells = Vec::new();
                for &(state, mut left) in runs {
                    while left > 0 {
                        let now = left.min(64);
                        cells.push(state << 6 | (now - 1) as u8);
                        left -= now;
                    }
                }
                let nonce = nonce.unwrap_or(false);
                OptionValue::from(OptionRef::AckVector { nonce, cells: &cells })
            }
            Content::Numbers(list) => {
                let values: Result<Vec<i128>, String> = list.iter().map(|n| v.value(n)).collect();
                with_numbers(self.kind, &values?)
                    .ok_or_else(|| format!("{} has other numbers", option_name(self.kind)))?
            }
        })
    }

    /// Whether this option of a packet matches. Sets variables that match.
    fn is(&self, there: &OptionValue, v: &mut Variables) -> bool {
        if same(there.kind) != self.kind {
            return false;
        }
        match &self.content {
            Content::Any => true,
            Content::Bytes(data) if self.kind == kind::DATA_DROPPED => {
                dropped(data) == dropped(&there.data)
            }
            Content::Bytes(data) => *data == there.data,
            Content::Begins(data) => there.data.starts_with(data),
            Content::Runs { nonce, runs } => {
                let echo = there.kind == kind::ACK_VECTOR_1;
                nonce.is_none_or(|n| n == echo) && joined(&there.data) == *runs
            }
            Content::Numbers(list) => numbers_of(there).is_some_and(|there| {
                there.len() == list.len() && list.iter().zip(there).all(|(n, is)| v.meets(n, is))
            }),
        }
    }
}

/// Text, or bytes as `0x...`.
fn bytes(t: &mut Tokens) -> Result<Vec<u8>, ScriptError> {
    match t.next() {
        Some(Token::Text(text)) => Ok(text.into_bytes()),
        Some(Token::Word(word)) => {
            hex(&word).ok_or_else(|| t.error(format!("{word:?} is not of the form 0x00ff")))
        }
        _ => Err(t.error("bytes as 0x... or \"text\" were expected")),
    }
}

/// Feature number and values, as in `(CCID, 2 3)` or `(CCID, 3, 3 2)`.
fn feature_bytes(t: &mut Tokens) -> Result<Vec<u8>, ScriptError> {
    let feature = feature(t)?;
    let info = feature.info().filter(|info| info.rule == Reconciliation::NonNegotiable);
    let mut data = vec![feature.0];
    while !matches!(t.peek(), Some(Token::Sign(')' | '*'))) {
        if t.take(',') {
            continue;
        }
        let word = t.word("a value or ')'")?;
        if word.starts_with("0x") && word.len() > 4 {
            data.extend(hex(&word).ok_or_else(|| t.error(format!("{word:?} is no hex value")))?);
            continue;
        }
        let value = whole(&word).ok_or_else(|| t.error(format!("{word:?} is no value")))?;
        let len = info.map_or(1, |info| info.value_len);
        let all = (value as u64).to_be_bytes();
        data.extend_from_slice(&all[8 - len..]);
    }
    Ok(data)
}

/// `R3 N1 E2`, newest first, optionally with `nonce0` or `nonce1`.
fn runs(t: &mut Tokens) -> Result<Content, ScriptError> {
    let (mut nonce, mut runs) = (None, Vec::new());
    while let Some(Token::Word(word)) = t.peek().cloned() {
        t.next();
        t.take(',');
        match word.as_str() {
            "nonce0" => nonce = Some(false),
            "nonce1" => nonce = Some(true),
            _ => {
                let state = word.chars().next().and_then(|c| "REXN".find(c));
                let len = word.get(1..).and_then(|n| n.parse::<u64>().ok()).filter(|n| *n > 0);
                let (Some(state), Some(len)) = (state, len) else {
                    let content = format!("{word:?} is no run: R, E, X or N and how many packets");
                    return Err(t.error(content));
                };
                runs.push((state as u8, len));
            }
        }
    }
    Ok(Content::Runs { nonce, runs })
}

/// Runs of cells; adjacent ones with the same state are merged.
fn joined(cells: &[u8]) -> Vec<(u8, u64)> {
    let mut runs: Vec<(u8, u64)> = Vec::new();
    for cell in cells {
        let (state, len) = (cell >> 6, u64::from(cell & 63) + 1);
        match runs.last_mut() {
            Some(last) if last.0 == state => last.1 += len,
            _ => runs.push((state, len)),
        }
    }
    runs
}

/// Blocks of Data Dropped; adjacent ones with the same code are merged.
fn dropped(blocks: &[u8]) -> Vec<(u8, u64)> {
    let mut runs: Vec<(u8, u64)> = Vec::new();
    for block in blocks {
        let (code, len) = match block {
            0..0x80 => (255, u64::from(*block) + 1),
            _ => (block >> 4 & 7, u64::from(block & 15) + 1),
        };
        match runs.last_mut() {
            Some(last) if last.0 == code => last.1 += len,
            _ => runs.push((code, len)),
        }
    }
    runs
}

/// `normal:3 not-listening:1`, newest first.
fn blocks(t: &mut Tokens) -> Result<Vec<u8>, ScriptError> {
    let mut data = Vec::new();
    while let Some(Token::Word(word)) = t.peek().cloned() {
        t.next();
        t.take(',');
        let (name, len) = word.split_once(':').unwrap_or((&word, "1"));
        let names: Vec<&str> = BLOCKS.iter().map(|(name, _)| *name).collect();
        let code = BLOCKS.iter().find(|(n, _)| *n == name);
        let code = code.ok_or_else(|| ScriptError::unknown(t.line, "block", name, &names))?.1;
        let most = if code == 255 { 128 } else { 16 };
        let len = len.parse::<u8>().ok().filter(|n| (1..=most).contains(n));
        let len = len.ok_or_else(|| t.error(format!("a block has 1 to {most} packets")))? - 1;
        data.push(if code == 255 { len } else { 0x80 | code << 4 | len });
    }
    Ok(data)
}

fn numbers(t: &mut Tokens) -> Result<Vec<Number>, ScriptError> {
    let mut all = vec![number(t)?];
    while t.peek() != Some(&Token::Sign(')')) {
        t.take(',');
        all.push(number(t)?);
    }
    Ok(all)
}

fn with_numbers(kind: u8, n: &[i128]) -> Option<OptionValue> {
    let u = |i: usize| u32::try_from(*n.get(i)?).ok();
    let mut intervals = Vec::new();
    let mut counts = Vec::new();
    let option = match (kind, n.len()) {
        (kind::NDP_COUNT, 1) => OptionRef::NdpCount(u64::try_from(n[0]).ok()?),
        (kind::TIMESTAMP, 1) => OptionRef::Timestamp(u(0)?),
        (kind::TIMESTAMP_ECHO, 1 | 2) => {
            OptionRef::TimestampEcho { timestamp: u(0)?, elapsed: u(1) }
        }
        (kind::ELAPSED_TIME, 1) => OptionRef::ElapsedTime(u(0)?),
        (kind::DATA_CHECKSUM, 1) => OptionRef::DataChecksum(u(0)?),
        (kind::LOSS_EVENT_RATE, 1) => OptionRef::LossEventRate(u(0)?),
        (kind::RECEIVE_RATE, 1) => OptionRef::ReceiveRate(u(0)?),
        (kind::LOSS_INTERVALS, len) if len % 4 == 1 => {
            for four in n[1..].chunks_exact(4) {
                let interval = LossInterval {
                    lossless_length: u32::try_from(four[0]).ok()?,
                    loss_length: u32::try_from(four[1]).ok()?,
                    data_length: u32::try_from(four[2]).ok()?,
                    nonce_echo: four[3] != 0,
                };
                intervals.extend_from_slice(&interval.to_bytes());
            }
            let skip_length = u8::try_from(n[0]).ok()?;
            OptionRef::LossIntervals { skip_length, intervals: &intervals }
        }
        (kind::DROPPED_PACKETS, _) => {
            for i in 0..n.len() {
                counts.extend_from_slice(&u(i)?.to_be_bytes()[1..]);
            }
            OptionRef::DroppedPackets(&counts)
        }
        _ => return None,
    };
    Some(option.into())
}

fn numbers_of(option: &OptionValue) -> Option<Vec<i128>> {
    Some(match option.as_ref().ok()? {
        OptionRef::NdpCount(n) => vec![n.into()],
        OptionRef::Timestamp(n)
        | OptionRef::ElapsedTime(n)
        | OptionRef::DataChecksum(n)
        | OptionRef::LossEventRate(n)
        | OptionRef::ReceiveRate(n) => vec![n.into()],
        OptionRef::TimestampEcho { timestamp, elapsed } => {
            let elapsed = elapsed.map(i128::from);
            [Some(timestamp.into()), elapsed].into_iter().flatten().collect()
        }
        OptionRef::LossIntervals { skip_length, intervals } => {
            let mut all = vec![i128::from(skip_length)];
            for i in LossInterval::iter(intervals) {
                all.extend([i.lossless_length, i.loss_length, i.data_length].map(i128::from));
                all.push(i.nonce_echo.into());
            }
            all
        }
        OptionRef::DroppedPackets(counts) => {
            OptionRef::drop_counts(counts).map(i128::from).collect()
        }
        _ => return None,
    })
}
