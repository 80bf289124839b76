//! Colours and dashes: a protocol has the same colour everywhere; its lines are distinguished by
//! dashes and lightness.

use udccp_scenario::Protocol;

use super::super::style::{Marker, style_of};
use super::super::svg::DASHES;

/// Colours of lines without a protocol, as an ordered ramp.
const RAMP: [&str; 8] =
    ["#2878b5", "#5a68c0", "#8559bf", "#ad4bb0", "#cb4391", "#dd4a68", "#df6340", "#d1861f"];

/// The style of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LineStyle {
    pub(super) colour: String,
    pub(super) dash: usize,
    pub(super) marker: Marker,
}

/// A style for each line, given its protocol.
pub(super) fn line_styles(protocols: &[Option<&'static Protocol>]) -> Vec<LineStyle> {
    let n = protocols.len();
    let look = |(i, protocol): (usize, &Option<&'static Protocol>)| {
        let before = protocols[..i].iter().filter(|p| *p == protocol).count();
        let of_kind = protocols.iter().filter(|p| *p == protocol).count();
        match protocol {
            Some(p) => LineStyle {
                colour: shade(style_of(p).colour, before as f64 / of_kind.max(2) as f64),
                dash: before % DASHES.len(),
                marker: style_of(p).marker,
            },
            None => {
                let step = if n < 2 { 0 } else { before * (RAMP.len() - 1) / (of_kind.max(2) - 1) };
                let colour = RAMP[step.min(RAMP.len() - 1)].to_owned();
                LineStyle { colour, dash: before % DASHES.len(), marker: Marker::Circle }
            }
        }
    };
    protocols.iter().enumerate().map(look).collect()
}

/// Blends a colour by `part` toward its darkest shade, or a dark colour toward its lightest. Every
/// shade is readable on white.
fn shade(colour: &str, part: f64) -> String {
    let channel = |i: usize| colour.get(i..i + 2).and_then(|h| u8::from_str_radix(h, 16).ok());
    let (Some(r), Some(g), Some(b)) = (channel(1), channel(3), channel(5)) else {
        return colour.to_owned();
    };
    let [r, g, b] = [r, g, b].map(f64::from);
    let luma = 0.299 * r + 0.587 * g + 0.114 * b;
    let (end, most) = if luma < 70.0 { (255.0, 0.5) } else { (0.0, 0.75) };
    let [r, g, b] = [r, g, b].map(|c| (c + (end - c) * part * most).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use udccp_scenario::protocol::find;

    #[test]
    fn a_protocol_keeps_its_colour_and_its_second_line_differs() {
        let (ccid2, cubic) = (find("dccp/ccid2"), find("tcp/cubic"));
        let looks = line_styles(&[ccid2, cubic, ccid2]);
        assert_eq!(looks[0].colour, style_of(ccid2.unwrap()).colour);
        assert_eq!(looks[1].colour, style_of(cubic.unwrap()).colour);
        assert_ne!(looks[0].colour, looks[2].colour);
        assert_ne!(looks[0].dash, looks[2].dash);
        assert_eq!(looks[0].marker, looks[2].marker);
    }

    #[test]
    fn lines_of_no_protocol_differ_in_colour_and_dash() {
        let looks = line_styles(&[None; 4]);
        for (i, a) in looks.iter().enumerate() {
            assert!(looks[..i].iter().all(|b| a.colour != b.colour && a.dash != b.dash));
        }
    }

    /// The contrast to white is at least 2.5, or that of the protocol's own colour.
    #[test]
    fn no_shade_is_pale() {
        let light = |colour: &str| {
            let channel = |i: usize| f64::from(u8::from_str_radix(&colour[i..i + 2], 16).unwrap());
            0.2126 * libm::pow(channel(1) / 255.0, 2.2)
                + 0.7152 * libm::pow(channel(3) / 255.0, 2.2)
                + 0.0722 * libm::pow(channel(5) / 255.0, 2.2)
        };
        for protocol in udccp_scenario::PROTOCOLS {
            let looks = line_styles(&[Some(protocol); 5]);
            let first = light(&looks[0].colour);
            for look in &looks {
                let found = light(&look.colour);
                assert!(found <= first.max(0.37), "{}: {} {found}", protocol.name, look.colour);
            }
        }
    }

    #[test]
    fn shades_of_one_colour_differ() {
        assert_eq!(shade("#0072b2", 0.0), "#0072b2");
        assert_eq!(shade("#0072b2", 1.0), "#001d2d");
        assert_eq!(shade("#222222", 1.0), "#919191");
    }
}
