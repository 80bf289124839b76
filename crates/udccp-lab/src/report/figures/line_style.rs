//! Colours and dashes: one colour a protocol everywhere; lines that share a protocol are told apart
//! by dash and lightness.

use udccp_scenario::Protocol;

use super::super::style::{Marker, style_of};
use super::super::svg::DASHES;

/// Colours of lines that belong to no protocol, in an order that reads as one.
const RAMP: [&str; 8] =
    ["#2878b5", "#5a68c0", "#8559bf", "#ad4bb0", "#cb4391", "#dd4a68", "#df6340", "#d1861f"];

/// How a line looks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LineStyle {
    pub(super) colour: String,
    pub(super) dash: usize,
    pub(super) marker: Marker,
}

/// A look for each line, by the protocol that it is of.
pub(super) fn looks(protocols: &[Option<&'static Protocol>]) -> Vec<LineStyle> {
    let n = protocols.len();
    let look = |(i, protocol): (usize, &Option<&'static Protocol>)| {
        let before = protocols[..i].iter().filter(|p| *p == protocol).count();
        let of_kind = protocols.iter().filter(|p| *p == protocol).count();
        match protocol {
            Some(p) => LineStyle {
                colour: lighter(style_of(p).colour, 0.5 * before as f64 / of_kind.max(2) as f64),
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

/// A colour mixed with white.
fn lighter(colour: &str, part: f64) -> String {
    let channel = |i: usize| colour.get(i..i + 2).and_then(|h| u8::from_str_radix(h, 16).ok());
    let (Some(r), Some(g), Some(b)) = (channel(1), channel(3), channel(5)) else {
        return colour.to_owned();
    };
    let mix = |c: u8| (f64::from(c) + (255.0 - f64::from(c)) * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(r), mix(g), mix(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use udccp_scenario::protocol::find;

    #[test]
    fn a_protocol_keeps_its_colour_and_its_second_line_differs() {
        let (ccid2, cubic) = (find("dccp/ccid2"), find("tcp/cubic"));
        let looks = looks(&[ccid2, cubic, ccid2]);
        assert_eq!(looks[0].colour, style_of(ccid2.unwrap()).colour);
        assert_eq!(looks[1].colour, style_of(cubic.unwrap()).colour);
        assert_ne!(looks[0].colour, looks[2].colour);
        assert_ne!(looks[0].dash, looks[2].dash);
        assert_eq!(looks[0].marker, looks[2].marker);
    }

    #[test]
    fn lines_of_no_protocol_differ_in_colour_and_dash() {
        let looks = looks(&[None; 4]);
        for (i, a) in looks.iter().enumerate() {
            assert!(looks[..i].iter().all(|b| a.colour != b.colour && a.dash != b.dash));
        }
    }

    #[test]
    fn white_is_as_light_as_it_gets() {
        assert_eq!(lighter("#0072b2", 0.0), "#0072b2");
        assert_eq!(lighter("#0072b2", 1.0), "#ffffff");
    }
}
