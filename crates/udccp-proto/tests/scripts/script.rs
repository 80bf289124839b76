//! Parses a script: actions, line by line.

use crate::error::ScriptError;
use crate::packet::{Data, PacketTemplate, choice, data, service, small};
use crate::tokens::{Number, Token, Tokens, number, span};

const COMMANDS: [&str; 22] = [
    "open", "set", "invite", "slow", "listen", "connect", "send", "recv", "close", "abort",
    "release", "stop", "unlisten", "mtu", "icmp", "backlog", "state", "event", "check", "let",
    "nothing", "raw",
];

const STATES: [&str; 9] = [
    "CLOSED", "LISTEN", "REQUEST", "RESPOND", "PARTOPEN", "OPEN", "CLOSEREQ", "CLOSING", "TIMEWAIT",
];

/// When a line is executed, in nanoseconds from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At the time of the previous line.
    Now,
    /// Between two times, which are relative to the previous line if `after`.
    At { after: bool, from: u64, to: u64 },
    /// At any time.
    Sometime,
}

/// `name=value` as written.
pub(crate) type Setting = (String, Vec<String>);

/// The action of a line.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A packet of the peer arrives.
    Arrives(Box<PacketTemplate>),
    /// Bytes from the peer arrive.
    Raw(Data),
    /// The endpoint sends a packet. With `others`, other packets may come before it.
    Leaves {
        packet: Box<PacketTemplate>,
        others: bool,
    },
    /// The endpoint sends nothing.
    Nothing,
    /// The handshake of a client or a server, with these settings.
    Open {
        is_server: bool,
        settings: Vec<Setting>,
    },
    Set(Vec<Setting>),
    /// With the text of the expected error.
    Listen {
        settings: Vec<Setting>,
        error: Option<String>,
    },
    Connect {
        settings: Vec<Setting>,
        error: Option<String>,
    },
    Send {
        data: Data,
        settings: Vec<Setting>,
        error: Option<String>,
    },
    /// The application reads this; `None`: there is nothing to read.
    Recv(Option<Data>),
    /// The application reads the end of the connection, with this text in its reason.
    RecvEnd(String),
    /// Waits for one client, with Listen packets (RFC 5596).
    Invite(Vec<Setting>),
    /// The application reports that it is slow, or no longer.
    Slow(bool),
    Close,
    Abort,
    Release,
    ShutdownRead,
    Unlisten,
    Mtu(u16),
    /// An ICMP message quotes our packet with this number.
    Icmp {
        mtu: Option<u16>,
        quotes: Number,
    },
    Backlog(u16),
    State(String),
    /// An event whose text starts like this; `None`: no event is left.
    Event(Option<String>),
    /// Statistics of the connection.
    Check(Vec<(String, Number)>),
    Let(String, Number),
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) when: When,
    pub(crate) action: Action,
}

/// Parses a whole script.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>, ScriptError> {
    let title = text.lines().next().unwrap_or_default();
    let cites = ["RFC ", "Linux"].iter().any(|word| title.contains(word));
    if !title.starts_with("# ") || !cites {
        let says = "the first line is \"# title\" and cites the section it shows (RFC 4340 7.5)";
        return Err(ScriptError::new(1, says));
    }
    let mut steps = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let mut t = Tokens::of(i + 1, line)?;
        if t.is_done() {
            continue;
        }
        let when = when(&mut t)?;
        let action = action(&mut t)?;
        if !t.is_done() {
            return Err(t.wanted("the end of the line"));
        }
        steps.push(Step { line: i + 1, when, action });
    }
    if steps.is_empty() {
        return Err(ScriptError::new(1, "nothing happens in this script"));
    }
    Ok(steps)
}

fn when(t: &mut Tokens) -> Result<When, ScriptError> {
    if t.take('*') {
        return Ok(When::Sometime);
    }
    let after = t.take('+');
    let starts_with_digit =
        matches!(t.peek(), Some(Token::Word(w)) if w.starts_with(|c: char| c.is_ascii_digit()));
    if !after && !starts_with_digit {
        return Ok(When::Now);
    }
    let from = seconds(t)?;
    let to = if t.take('~') { seconds(t)? } else { from };
    if to < from {
        return Err(t.error("the time ends before it begins"));
    }
    Ok(When::At { after, from, to })
}

fn seconds(t: &mut Tokens) -> Result<u64, ScriptError> {
    let word = t.word("a time in seconds")?;
    span(&word).ok_or_else(|| t.error(format!("{word:?} is no time: write 0.1, 100ms or 2s")))
}

fn action(t: &mut Tokens) -> Result<Action, ScriptError> {
    if t.take('<') {
        return Ok(Action::Arrives(Box::new(PacketTemplate::parse(t)?)));
    }
    let others = t.take_others();
    if others || t.peek() == Some(&Token::Sign('>')) {
        t.expect('>')?;
        return Ok(Action::Leaves { packet: Box::new(PacketTemplate::parse(t)?), others });
    }
    let word = t.word("<, > or a command")?;
    Ok(match word.as_str() {
        "raw" => Action::Raw(data(t)?),
        "nothing" => Action::Nothing,
        "open" => {
            let is_server = choice(t, &["client", "server"])? == 1;
            Action::Open { is_server, settings: settings(t)? }
        }
        "set" => Action::Set(settings(t)?),
        "listen" => Action::Listen { settings: settings(t)?, error: error(t)? },
        "invite" => Action::Invite(settings(t)?),
        "slow" => Action::Slow(choice(t, &["off", "on"])? == 1),
        "connect" => Action::Connect { settings: settings(t)?, error: error(t)? },
        "send" => Action::Send { data: data(t)?, settings: settings(t)?, error: error(t)? },
        "recv" => recv(t)?,
        "close" => Action::Close,
        "abort" => Action::Abort,
        "release" => Action::Release,
        "stop" => {
            if !t.take_word("listening") {
                return Err(t.wanted("\"listening\""));
            }
            Action::ShutdownRead
        }
        "unlisten" => Action::Unlisten,
        "mtu" => Action::Mtu(small(t)?),
        "icmp" => icmp(t)?,
        "backlog" => Action::Backlog(small(t)?),
        "state" => Action::State(STATES[choice(t, &STATES)?].to_owned()),
        "event" => match t.word("an event, or none")? {
            none if none == "none" => Action::Event(None),
            name => Action::Event(Some(name)),
        },
        "check" => Action::Check(checks(t)?),
        "let" => {
            t.expect('$')?;
            let name = t.word("the name of a variable")?;
            t.expect('=')?;
            Action::Let(name, number(t)?)
        }
        other => return Err(ScriptError::unknown(t.line, "command", other, &COMMANDS)),
    })
}

/// Any number of `name=value[,value]`.
fn settings(t: &mut Tokens) -> Result<Vec<Setting>, ScriptError> {
    let mut all = Vec::new();
    while let (Some(Token::Word(name)), Some(Token::Sign('='))) =
        (t.peek().cloned(), t.peek_second())
    {
        if name == "error" {
            break;
        }
        t.next();
        t.expect('=')?;
        let values = if name == "service" {
            let mut codes = vec![service(t)?.0.to_string()];
            while t.take(',') {
                codes.push(service(t)?.0.to_string());
            }
            codes
        } else {
            let mut words = vec![t.word("a value")?];
            while t.take(',') {
                words.push(t.word("a value")?);
            }
            words
        };
        all.push((name, values));
    }
    Ok(all)
}

/// `error="text"`, if present.
fn error(t: &mut Tokens) -> Result<Option<String>, ScriptError> {
    if !t.take_word("error") {
        return Ok(None);
    }
    t.expect('=')?;
    match t.next() {
        Some(Token::Text(text)) => Ok(Some(text)),
        _ => Err(t.error("error=\"part of its text\" was expected")),
    }
}

fn recv(t: &mut Tokens) -> Result<Action, ScriptError> {
    if t.take_word("nothing") {
        return Ok(Action::Recv(None));
    }
    if !t.take_word("end") {
        return Ok(Action::Recv(Some(data(t)?)));
    }
    match t.next() {
        Some(Token::Text(reason)) => Ok(Action::RecvEnd(reason)),
        None => Ok(Action::RecvEnd(String::new())),
        Some(_) => Err(t.error("recv end \"part of the reason\" was expected")),
    }
}

fn icmp(t: &mut Tokens) -> Result<Action, ScriptError> {
    let mtu = match choice(t, &["unreachable", "too-big"])? {
        0 => None,
        _ => Some(small(t)?),
    };
    if !t.take_word("quotes") {
        return Err(t.wanted("\"quotes\" and the sequence number of our packet"));
    }
    Ok(Action::Icmp { mtu, quotes: number(t)? })
}

fn checks(t: &mut Tokens) -> Result<Vec<(String, Number)>, ScriptError> {
    let mut all = Vec::new();
    while !t.is_done() {
        let name = t.word("the name of a statistic")?;
        t.expect('=')?;
        all.push((name, number(t)?));
    }
    Ok(all)
}
