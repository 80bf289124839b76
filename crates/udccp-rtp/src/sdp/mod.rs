//! Reads and writes the lines of a session description for RTP over DCCP (RFC 5762 section 5), and
//! those of any other medium over DCCP ([`Media`]).
//!
//! ```
//! use udccp_rtp::sdp::{Format, Kind, MediaDescription, Setup};
//!
//! let offer = MediaDescription::new(Kind::Video, vec![Format::dynamic(99, "h261/90000")]);
//! let answer = offer.answer();
//! assert_eq!(answer.setup, Setup::Passive);
//! assert_eq!(offer.to_string().lines().next(), Some("m=video 9 DCCP/RTP/AVP 99"));
//! assert_eq!(offer.to_string().parse(), Ok(offer));
//! ```

mod media;

use std::fmt;
use std::str::FromStr;

use udccp::ServiceCode;

pub use self::media::{Media, MediaError};
pub use crate::error::SdpError;
use crate::{RTP_PORT, SERVICE_AUDIO, SERVICE_OTHER, SERVICE_TEXT, SERVICE_VIDEO};

/// RFC 4145 section 4.1: the port of a side that connects and does not listen.
const DISCARD_PORT: u16 = 9;
/// Payload types that a session description assigns (RFC 3551 section 3).
const DYNAMIC: std::ops::RangeInclusive<u8> = 96..=127;

/// The top-level media type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `audio`.
    Audio,
    /// `video`.
    Video,
    /// `text`.
    Text,
    /// Another one, by name.
    Other(String),
}

impl Kind {
    //= 5762-5.2-3
    //= 5762-5.2-4
    /// The service code registered for it (RFC 5762 section 5.2).
    pub fn service_code(&self) -> ServiceCode {
        match self {
            Self::Audio => SERVICE_AUDIO,
            Self::Video => SERVICE_VIDEO,
            Self::Text => SERVICE_TEXT,
            Self::Other(_) => SERVICE_OTHER,
        }
    }
}

//= 5762-4.5-2
//= 5762-5.1-2
/// An RTP profile over DCCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Audio and video with minimal control (RFC 3551).
    Avp,
    /// Secure RTP (RFC 3711).
    Savp,
    /// With feedback (RFC 4585).
    Avpf,
    /// Secure RTP with feedback (RFC 5124).
    Savpf,
}

impl Profile {
    /// Whether packets are authenticated.
    pub fn is_secure(self) -> bool {
        matches!(self, Self::Savp | Self::Savpf)
    }
}

/// A payload format.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// The payload type in RTP packets, 0 to 127.
    pub payload_type: u8,
    /// Name, clock rate and parameters, as in `a=rtpmap`; `None` for a static payload type.
    pub map: Option<String>,
}

impl Format {
    /// A format with a static payload type (RFC 3551 section 6).
    pub fn fixed(payload_type: u8) -> Self {
        Self { payload_type, map: None }
    }

    /// A format with a dynamic payload type, 96 to 127; `map` is for example `h261/90000`.
    pub fn dynamic(payload_type: u8, map: impl Into<String>) -> Self {
        Self { payload_type, map: Some(map.into()) }
    }
}

/// Who sends the DCCP-Request (RFC 4145 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setup {
    /// This side connects.
    Active,
    /// This side listens.
    Passive,
    /// Either: the answer chooses.
    ActPass,
    /// No connection for now.
    HoldConn,
}

/// The description of one medium. Its text is the lines from `m=` on. Parsing a whole session
/// description returns its first medium over DCCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaDescription {
    /// The kind of media.
    pub kind: Kind,
    /// The DCCP port that this side listens on; 9 (discard) if it only connects.
    pub port: u16,
    /// The profile.
    pub profile: Profile,
    /// Payload formats, the preferred one first.
    pub formats: Vec<Format>,
    /// Service code of the connection.
    pub service: ServiceCode,
    /// Which side connects.
    pub setup: Setup,
    /// Whether to open a new connection even if there is one (RFC 4145 section 5).
    pub new_connection: bool,
    /// Whether RTP and RTCP share the connection (RFC 5761).
    pub rtcp_mux: bool,
    /// DCCP port of RTCP, if it is not the one after that of RTP (RFC 3605).
    pub rtcp_port: Option<u16>,
}

impl MediaDescription {
    /// An offer of a side that connects, with everything else as RFC 5762 recommends.
    pub fn new(kind: Kind, formats: Vec<Format>) -> Self {
        Self {
            service: kind.service_code(),
            kind,
            port: DISCARD_PORT,
            profile: Profile::Avp,
            formats,
            setup: Setup::Active,
            new_connection: true,
            rtcp_mux: true,
            rtcp_port: None,
        }
    }

    //= 5762-5.1-6
    /// The same offer of a side that listens on the registered port.
    #[must_use]
    pub fn listening(self) -> Self {
        self.listening_at(RTP_PORT)
    }

    //= 5762-5.1-7
    /// The same offer of a side that listens on another port; RFC 5762 uses even ports for RTP.
    #[must_use]
    pub fn listening_at(mut self, port: u16) -> Self {
        (self.port, self.setup) = (port, Setup::Passive);
        self
    }

    //= 5762-5.1-8
    /// The port of RTCP: that of RTP if they share it, otherwise the given one, otherwise the next.
    pub fn rtcp_port(&self) -> u16 {
        if self.rtcp_mux { self.port } else { self.rtcp_port.unwrap_or(self.port.wrapping_add(1)) }
    }

    //= 5762-5.3-1
    //= 5762-5.3-2
    /// An answer to this offer that accepts everything: the opposite role, the same connection.
    #[must_use]
    pub fn answer(&self) -> Self {
        let setup = match self.setup {
            Setup::Passive | Setup::ActPass => Setup::Active,
            Setup::Active => Setup::Passive,
            Setup::HoldConn => Setup::HoldConn,
        };
        let port = if setup == Setup::Passive { RTP_PORT } else { DISCARD_PORT };
        Self { setup, port, rtcp_port: None, ..self.clone() }
    }

    //= 5762-5.3-2
    /// Whether an offer and answer in an existing session require a new connection.
    pub fn needs_connection(&self, answer: &Self) -> bool {
        self.setup != Setup::HoldConn && (self.new_connection || answer.new_connection)
    }

    fn check(self) -> Result<Self, SdpError> {
        if self.formats.is_empty() {
            return Err(SdpError::NoFormat);
        }
        let unnamed = |f: &&Format| DYNAMIC.contains(&f.payload_type) && f.map.is_none();
        match self.formats.iter().find(unnamed) {
            Some(format) => Err(SdpError::NoMap(format.payload_type)),
            None => Ok(self),
        }
    }
}

//= 5762-5.1-3
//= 5762-5.1-4
//= 5762-5.1-5
//= 5762-5.1-9
//= 5762-5.4-1
//= 5762-5.4-2
impl fmt::Display for MediaDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m={} {} {}", self.kind, self.port, self.profile)?;
        for format in &self.formats {
            write!(f, " {}", format.payload_type)?;
        }
        f.write_str("\r\n")?;
        if self.rtcp_mux {
            f.write_str("a=rtcp-mux\r\n")?;
        } else if let Some(port) = self.rtcp_port {
            write!(f, "a=rtcp:{port}\r\n")?;
        }
        for format in &self.formats {
            if let Some(map) = &format.map {
                write!(f, "a=rtpmap:{} {map}\r\n", format.payload_type)?;
            }
        }
        let connection = if self.new_connection { "new" } else { "existing" };
        write!(f, "a=dccp-service-code:{}\r\n", self.service)?;
        write!(f, "a=setup:{}\r\na=connection:{connection}\r\n", self.setup)
    }
}

impl FromStr for MediaDescription {
    type Err = SdpError;

    fn from_str(text: &str) -> Result<Self, SdpError> {
        let mut lines = text.lines().map(str::trim_end);
        let is_dccp = |line: &&str| {
            line.starts_with("m=") && line.split(' ').nth(2).is_some_and(|p| p.starts_with("DCCP"))
        };
        let media = lines.find(is_dccp).ok_or(SdpError::NoMedia)?;
        let mut description = media_line(media)?;
        // RFC 4145 allows both attributes at session level; those of the medium take precedence.
        for line in text.lines().map(str::trim_end).take_while(|line| !line.starts_with("m=")) {
            let for_all = line.strip_prefix("a=");
            if let Some(attribute) = for_all.filter(|a| is_one_of(a, &["setup", "connection"])) {
                description.attribute(attribute)?;
            }
        }
        for line in lines.take_while(|line| !line.starts_with("m=")) {
            if let Some(attribute) = line.strip_prefix("a=") {
                description.attribute(attribute)?;
            }
        }
        description.check()
    }
}

/// Whether an attribute has one of these names.
fn is_one_of(attribute: &str, names: &[&str]) -> bool {
    attribute.split_once(':').is_some_and(|(name, _)| names.contains(&name))
}

fn media_line(line: &str) -> Result<MediaDescription, SdpError> {
    let bad = || SdpError::Line(line.to_owned());
    let mut words = line["m=".len()..].split(' ');
    let kind = match words.next().ok_or_else(bad)? {
        "audio" => Kind::Audio,
        "video" => Kind::Video,
        "text" => Kind::Text,
        other => Kind::Other(other.to_owned()),
    };
    let port = words.next().and_then(|w| w.split('/').next()?.parse().ok()).ok_or_else(bad)?;
    let profile = words.next().ok_or_else(bad)?.parse()?;
    let number = |word: &str| word.parse().ok().filter(|&n: &u8| n < 128).map(Format::fixed);
    let formats = words.map(|w| number(w).ok_or_else(bad)).collect::<Result<Vec<_>, _>>()?;
    Ok(MediaDescription {
        service: kind.service_code(),
        kind,
        port,
        profile,
        formats,
        // RFC 4145 section 4.1: the default of an offer.
        setup: Setup::Active,
        new_connection: true,
        rtcp_mux: false,
        rtcp_port: None,
    })
}

impl MediaDescription {
    fn attribute(&mut self, attribute: &str) -> Result<(), SdpError> {
        let bad = || SdpError::Line(format!("a={attribute}"));
        let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
        match name {
            "rtcp-mux" => self.rtcp_mux = true,
            "rtcp" => {
                let port = value.split(' ').next().and_then(|p| p.parse().ok());
                self.rtcp_port = Some(port.ok_or_else(bad)?);
            }
            "rtpmap" => {
                let (number, map) = value.split_once(' ').ok_or_else(bad)?;
                let number: u8 = number.parse().map_err(|_| bad())?;
                for format in self.formats.iter_mut().filter(|f| f.payload_type == number) {
                    format.map = Some(map.to_owned());
                }
            }
            // Compared as a number, whatever its notation.
            //= 5762-5.2-1
            "dccp-service-code" => self.service = value.parse().map_err(|_| bad())?,
            "setup" => self.setup = value.parse().map_err(|()| bad())?,
            "connection" => {
                self.new_connection = match value {
                    "new" => true,
                    "existing" => false,
                    _ => return Err(bad()),
                };
            }
            // Unknown attributes are ignored (RFC 4566 section 5.13).
            _ => {}
        }
        Ok(())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Text => "text",
            Self::Other(name) => name,
        })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Avp => "DCCP/RTP/AVP",
            Self::Savp => "DCCP/RTP/SAVP",
            Self::Avpf => "DCCP/RTP/AVPF",
            Self::Savpf => "DCCP/RTP/SAVPF",
        })
    }
}

impl FromStr for Profile {
    type Err = SdpError;

    fn from_str(text: &str) -> Result<Self, SdpError> {
        match text {
            "DCCP/RTP/AVP" => Ok(Self::Avp),
            "DCCP/RTP/SAVP" => Ok(Self::Savp),
            "DCCP/RTP/AVPF" => Ok(Self::Avpf),
            "DCCP/RTP/SAVPF" => Ok(Self::Savpf),
            other => Err(SdpError::Protocol(other.to_owned())),
        }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Passive => "passive",
            Self::ActPass => "actpass",
            Self::HoldConn => "holdconn",
        })
    }
}

impl FromStr for Setup {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "active" => Ok(Self::Active),
            "passive" => Ok(Self::Passive),
            "actpass" => Ok(Self::ActPass),
            "holdconn" => Ok(Self::HoldConn),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: &str = "v=0\r
o=alice 1129377363 1 IN IP4 192.0.2.47\r
s=-\r
c=IN IP4 192.0.2.47\r
t=0 0\r
m=video 5004 DCCP/RTP/AVP 99\r
a=rtcp-mux\r
a=rtpmap:99 h261/90000\r
a=dccp-service-code:SC=x52545056\r
a=setup:passive\r
a=connection:new\r
";

    fn offer() -> MediaDescription {
        OFFER.parse().unwrap()
    }

    //= 5762-5.1-3 test
    //= 5762-5.1-4 test
    //= 5762-5.1-6 test
    //= 5762-5.2-3 test
    //= 5762-5.2-4 test
    //= 5762-5.3-1 test
    //= 5762-5.4-1 test
    /// RFC 5762 section 5.5.
    #[test]
    fn the_example_of_the_rfc_is_read_and_answered() {
        let ours = MediaDescription::new(Kind::Video, vec![Format::dynamic(99, "h261/90000")]);
        assert_eq!(offer(), ours.listening());
        assert_eq!((offer().port, offer().rtcp_port()), (RTP_PORT, RTP_PORT));
        let answer = offer().answer().to_string();
        assert_eq!(
            answer,
            "m=video 9 DCCP/RTP/AVP 99\r\na=rtcp-mux\r\na=rtpmap:99 h261/90000\r\n\
             a=dccp-service-code:SC:RTPV\r\na=setup:active\r\na=connection:new\r\n"
        );
        assert_eq!(answer.parse(), Ok(offer().answer()));
    }

    #[test]
    fn lines_of_another_medium_say_nothing_about_this_one() {
        let more = "m=audio 5 RTP/AVP 0\r\na=setup:active\r\na=connection:existing\r\n";
        assert_eq!(format!("{OFFER}{more}").parse(), Ok(offer()));
    }

    #[test]
    fn what_follows_a_port_is_not_of_its_number() {
        let lines = ["m=audio 5004/2 DCCP/RTP/AVP 0", "a=rtcp:5010 IN IP4 192.0.2.47"];
        let read: MediaDescription = lines.join("\r\n").parse().unwrap();
        assert_eq!((read.port, read.rtcp_port()), (5004, 5010));
    }

    #[test]
    fn an_active_offer_is_answered_with_ports_of_our_own() {
        let mut offer = MediaDescription::new(Kind::Audio, vec![Format::fixed(0)]);
        (offer.rtcp_mux, offer.rtcp_port) = (false, Some(6001));
        let answer = offer.answer();
        assert_eq!((answer.port, answer.rtcp_port()), (RTP_PORT, RTP_PORT + 1));
    }

    //= 5762-5.2-1 test
    #[test]
    fn service_codes_count_by_their_number() {
        for text in ["SC:RTPV", "SC=1381257302", "SC=x52545056", "SC=x5254505 6"] {
            let read: Result<MediaDescription, _> = OFFER.replace("SC=x52545056", text).parse();
            match text.contains(' ') {
                false => assert_eq!(read.unwrap().service, SERVICE_VIDEO),
                true => assert!(matches!(read, Err(SdpError::Line(_)))),
            }
        }
        let kinds = ["audio", "video", "text", "application"];
        let codes = [SERVICE_AUDIO, SERVICE_VIDEO, SERVICE_TEXT, SERVICE_OTHER];
        for (kind, code) in kinds.into_iter().zip(codes) {
            let read: MediaDescription = format!("m={kind} 5004 DCCP/RTP/AVP 0\n").parse().unwrap();
            assert_eq!((read.service, read.kind.service_code()), (code, code));
        }
    }

    //= 5762-5.1-2 test
    //= 5762-5.1-5 test
    //= 5762-4.5-2 test
    #[test]
    fn descriptions_without_rtp_over_dccp_are_rejected_with_a_reason() {
        let with = |line: &str| format!("{line}\r\n").parse::<MediaDescription>();
        assert_eq!(with("m=video 5004 RTP/AVP 99"), Err(SdpError::NoMedia));
        assert_eq!(with("m=video 5004 DCCP 99"), Err(SdpError::Protocol("DCCP".into())));
        assert_eq!(with("m=audio 5004 DCCP/RTP/AVP"), Err(SdpError::NoFormat));
        assert_eq!(with("m=audio 5004 DCCP/RTP/AVP 97"), Err(SdpError::NoMap(97)));
        assert!(matches!(with("m=audio 5004 DCCP/RTP/AVP 128"), Err(SdpError::Line(_))));
        assert!(matches!(with("m=audio no DCCP/RTP/AVP 0"), Err(SdpError::Line(_))));
        for profile in [Profile::Avp, Profile::Savp, Profile::Avpf, Profile::Savpf] {
            assert_eq!(with(&format!("m=audio 5004 {profile} 0")).unwrap().profile, profile);
        }
    }

    //= 5762-5.1-7 test
    //= 5762-5.1-8 test
    //= 5762-5.1-9 test
    //= 5762-5.4-2 test
    #[test]
    fn without_sharing_rtcp_has_a_port_of_its_own() {
        let audio = MediaDescription::new(Kind::Audio, vec![Format::fixed(0)]);
        let apart = MediaDescription { rtcp_mux: false, ..audio.listening_at(50_000) };
        let text = apart.to_string();
        assert!(!text.contains("rtcp"), "{text}");
        assert_eq!(apart.rtcp_port(), 50_001);
        let named = MediaDescription { rtcp_port: Some(50_007), ..apart };
        let text = named.to_string();
        assert!(text.contains("a=rtcp:50007\r\n") && !text.contains("rtcp-mux"), "{text}");
        let read: MediaDescription = text.parse().unwrap();
        assert_eq!((read.rtcp_port(), &read), (50_007, &named));
    }

    //= 5762-5.3-1 test
    #[test]
    fn roles_may_be_given_for_the_whole_session() {
        let all =
            OFFER.replace("t=0 0\r\n", "t=0 0\r\na=connection:existing\r\na=setup:holdconn\r\n");
        assert_eq!(all.parse(), Ok(offer()), "the medium has its own");
        let media_says_nothing =
            all.replace("a=setup:passive\r\n", "").replace("a=connection:new\r\n", "");
        let read: MediaDescription = media_says_nothing.parse().unwrap();
        assert_eq!((read.setup, read.new_connection), (Setup::HoldConn, false));
        let wrong = all.replace("holdconn", "maybe").parse::<MediaDescription>();
        assert_eq!(wrong, Err(SdpError::Line("a=setup:maybe".into())));
        // Attributes of another medium do not count.
        let other = "m=audio 9 RTP/AVP 0\na=setup:passive\nm=audio 5004 DCCP/RTP/AVP 0\n";
        assert_eq!(other.parse::<MediaDescription>().unwrap().setup, Setup::Active);
    }

    //= 5762-5.3-2 test
    #[test]
    fn an_existing_connection_is_kept_if_both_say_so() {
        let existing = OFFER.replace("connection:new", "connection:existing");
        let existing: MediaDescription = existing.parse().unwrap();
        assert!(!existing.needs_connection(&existing.answer()));
        assert!(existing.needs_connection(&offer().answer()));
        assert!(offer().needs_connection(&offer().answer()));
        let hold: MediaDescription = OFFER.replace("passive", "holdconn").parse().unwrap();
        assert_eq!(hold.answer().setup, Setup::HoldConn);
        assert!(!hold.needs_connection(&hold.answer()));
        let either: MediaDescription = OFFER.replace("passive", "actpass").parse().unwrap();
        assert_eq!(either.answer().setup, Setup::Active);
    }
}
