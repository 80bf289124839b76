//! Reads and writes the lines of any medium over DCCP, with or without RTP and UDP (RFC 5762
//! section 5, RFC 6773 section 5), so that both ends can agree on ports, service code and
//! encapsulation.
//!
//! ```
//! use udccp_rtp::sdp::Media;
//!
//! let offer: Media = "m=video 50234 UDP/DCCP/RTP/AVP 99\n\
//!     a=dccp-service-code:SC=x52545056\n\
//!     a=dccp-port:5004\n\
//!     a=setup:passive\n".parse()?;
//! assert_eq!((offer.port, offer.udp_port), (5004, Some(50234)));
//! assert_eq!(offer.service, Some("SC:RTPV".parse().unwrap()));
//! # Ok::<(), udccp_rtp::sdp::MediaError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use udccp::ServiceCode;

use super::Setup;

/// A media description over DCCP: its `m=` line and the attributes that concern DCCP. All other
/// lines are up to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// The kind of media: `audio`, `video`...
    pub media: String,
    /// The DCCP port; 9 (discard) if this side only connects.
    pub port: u16,
    /// The UDP port of the encapsulation (RFC 6773); `None` for DCCP directly over IP.
    pub udp_port: Option<u16>,
    /// The profile inside DCCP: `RTP/AVP`, `RTP/SAVPF`...; `None` if there is none.
    pub profile: Option<String>,
    /// The formats, as at the end of the `m=` line.
    pub formats: String,
    /// The service code.
    pub service: Option<ServiceCode>,
    /// Which side connects.
    pub setup: Option<Setup>,
    /// RTP and RTCP share one DCCP port (RFC 5761); recommended with UDP.
    pub rtcp_mux: bool,
}

/// The error for a text that is not a media description over DCCP.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MediaError {
    /// There is no `m=` line, or more than one.
    #[error("a media description needs exactly one m= line")]
    MediaLine,
    /// The `m=` line is not of the form `m=<media> <port> <proto> <fmt>`.
    #[error("\"{0}\" is not an m= line; write m=audio 5004 DCCP/RTP/AVP 0")]
    Form(String),
    /// The protocol is not DCCP.
    #[error("\"{0}\" is not DCCP; valid: DCCP, DCCP/RTP/AVP, UDP/DCCP, UDP/DCCP/RTP/AVP")]
    Protocol(String),
    /// DCCP inside UDP needs the DCCP port in an attribute (RFC 6773 section 5.2).
    #[error("DCCP inside UDP needs an a=dccp-port: line")]
    NoDccpPort,
    /// The value of an attribute is invalid.
    #[error("\"{value}\" cannot be the value of a={attribute}:")]
    Attribute {
        /// The attribute.
        attribute: &'static str,
        /// Its value.
        value: String,
    },
}

impl FromStr for Media {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        let lines = || text.lines().map(str::trim_end);
        let mut media_lines = lines().filter_map(|line| line.strip_prefix("m="));
        let (Some(line), None) = (media_lines.next(), media_lines.next()) else {
            return Err(MediaError::MediaLine);
        };
        let mut media = Self::from_line(line)?;
        let mut dccp_port = None;
        for line in lines() {
            let Some(attribute) = line.strip_prefix("a=") else { continue };
            let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
            match name {
                "dccp-service-code" => {
                    media.service = Some(parsed("dccp-service-code", value)?);
                }
                "dccp-port" => dccp_port = Some(parsed("dccp-port", value)?),
                "setup" => {
                    media.setup = Some(parsed("setup", value)?);
                }
                "rtcp-mux" => media.rtcp_mux = true,
                _ => {}
            }
        }
        //= 6773-5.1-1
        //= 6773-5.2-2
        if media.udp_port.is_some() {
            media.port = dccp_port.ok_or(MediaError::NoDccpPort)?;
        }
        Ok(media)
    }
}

impl Media {
    /// Parses what follows `m=`.
    fn from_line(line: &str) -> Result<Self, MediaError> {
        let form = || MediaError::Form(format!("m={line}"));
        let mut parts = line.splitn(4, ' ');
        let mut part = || parts.next().filter(|p| !p.is_empty()).ok_or_else(form);
        let (media, port, proto, formats) = (part()?, part()?, part()?, part()?);
        // A port count, after a slash, is for multicast only.
        let port = port.split('/').next().and_then(|p| p.parse().ok()).ok_or_else(form)?;
        let (is_udp, rest) = match proto.strip_prefix("UDP/") {
            Some(rest) => (true, rest),
            None => (false, proto),
        };
        let profile = match rest.strip_prefix("DCCP") {
            Some("") => None,
            Some(profile) if profile.len() > 1 && profile.starts_with('/') => {
                Some(profile[1..].to_owned())
            }
            _ => return Err(MediaError::Protocol(proto.to_owned())),
        };
        Ok(Self {
            media: media.to_owned(),
            port,
            udp_port: is_udp.then_some(port),
            profile,
            formats: formats.to_owned(),
            service: None,
            setup: None,
            rtcp_mux: false,
        })
    }
}

//= 6773-5-1
//= 6773-5-2
//= 6773-5.2-1
/// The lines of a session description, each ended by CR LF.
impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (around, port) = match self.udp_port {
            Some(udp_port) => ("UDP/", udp_port),
            None => ("", self.port),
        };
        write!(f, "m={} {port} {around}DCCP", self.media)?;
        if let Some(profile) = &self.profile {
            write!(f, "/{profile}")?;
        }
        write!(f, " {}\r\n", self.formats)?;
        if let Some(service) = self.service {
            write!(f, "a=dccp-service-code:{service}\r\n")?;
        }
        if self.udp_port.is_some() {
            write!(f, "a=dccp-port:{}\r\n", self.port)?;
        }
        if self.rtcp_mux {
            f.write_str("a=rtcp-mux\r\n")?;
        }
        self.setup.map_or(Ok(()), |setup| write!(f, "a=setup:{setup}\r\n"))
    }
}

fn parsed<T: FromStr>(attribute: &'static str, value: &str) -> Result<T, MediaError> {
    value.parse().map_err(|_| wrong(attribute, value))
}

fn wrong(attribute: &'static str, value: &str) -> MediaError {
    MediaError::Attribute { attribute, value: value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= 6773-5-1 test
    //= 6773-5-2 test
    //= 6773-5.1-1 test
    //= 6773-5.2-1 test
    //= 6773-5.2-2 test
    /// The offer and answer of RFC 6773 section 5.5.
    #[test]
    fn the_example_of_the_rfc_is_read_and_written() {
        let offer: Media = "v=0\r\nm=video 50234 UDP/DCCP/RTP/AVP 99\r\na=rtpmap:99 h261/90000\r\n\
            a=dccp-service-code:SC=x52545056\r\na=dccp-port:5004\r\na=rtcp:5005\r\n\
            a=setup:passive\r\na=connection:new\r\n"
            .parse()
            .unwrap();
        assert_eq!((offer.port, offer.udp_port, offer.rtcp_mux), (5004, Some(50_234), false));
        assert_eq!(
            (offer.profile.as_deref(), offer.setup),
            (Some("RTP/AVP"), Some(Setup::Passive))
        );
        let answer = Media { port: 9, udp_port: Some(40_123), setup: Some(Setup::Active), ..offer };
        let text = "m=video 40123 UDP/DCCP/RTP/AVP 99\r\na=dccp-service-code:SC:RTPV\r\n\
            a=dccp-port:9\r\na=setup:active\r\n";
        assert_eq!(answer.to_string(), text);
        assert_eq!(text.parse(), Ok(answer.clone()));
        let native = Media { udp_port: None, port: 5004, rtcp_mux: true, ..answer };
        assert!(native.to_string().starts_with("m=video 5004 DCCP/RTP/AVP 99\r\n"));
        assert!(!native.to_string().contains("dccp-port"));
        assert_eq!(native.to_string().parse(), Ok(native));
    }

    #[test]
    fn a_count_of_ports_is_skipped() {
        let media: Media = "m=audio 5004/2 DCCP 0".parse().unwrap();
        assert_eq!(media.port, 5004);
    }

    #[test]
    fn every_fault_is_named() {
        let error = |text: &str| text.parse::<Media>().unwrap_err();
        assert_eq!(error("a=dccp-port:1"), MediaError::MediaLine);
        assert_eq!(error("m=a 1 DCCP 0\nm=a 1 DCCP 0"), MediaError::MediaLine);
        assert!(matches!(error("m=audio 70000 DCCP 0"), MediaError::Form(_)));
        assert!(matches!(error("m=audio 1 DCCP"), MediaError::Form(_)));
        assert_eq!(error("m=audio 1 RTP/AVP 0"), MediaError::Protocol("RTP/AVP".into()));
        assert_eq!(error("m=audio 1 DCCPX 0"), MediaError::Protocol("DCCPX".into()));
        assert_eq!(error("m=audio 1 UDP/DCCP 0"), MediaError::NoDccpPort);
        let bad = error("m=audio 1 DCCP 0\na=dccp-service-code:fdpz");
        assert!(bad.to_string().contains("fdpz"), "{bad}");
        assert!(error("m=audio 1 DCCP 0\na=setup:maybe").to_string().contains("a=setup:"));
    }
}
