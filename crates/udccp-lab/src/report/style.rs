//! Gives each protocol one colour and one marker, the same in every figure.

use udccp_scenario::Protocol;

/// Marker shapes of points in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ▼
    TriangleDown,
    /// ◀
    TriangleLeft,
    /// ▶
    TriangleRight,
    /// ◆
    Diamond,
    /// ✚
    Plus,
    /// ⬧, taller than wide
    TallDiamond,
    /// ✕
    Cross,
    /// ⌃, filled
    Chevron,
    /// ⬟
    Pentagon,
    /// ⬢
    Hexagon,
    /// ★
    Star,
    /// ⧓
    Bowtie,
    /// ⧗
    Hourglass,
    /// ▬
    Bar,
    /// ▮
    Pillar,
    /// ◓
    Arch,
    /// An arrow up.
    Arrow,
    /// An arrow down.
    ArrowDown,
    /// ▰
    Slanted,
}

/// How figures and tables show a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Its colour, chosen to be distinguishable with colour blindness too.
    pub colour: &'static str,
    /// Its marker.
    pub marker: Marker,
}

/// The style of every protocol, by its name. A new protocol needs a row.
const STYLES: &[(&str, &str, Marker)] = &[
    ("dccp/ccid2", "#0072b2", Marker::Circle),
    ("dccp/ccid3", "#cc79a7", Marker::Plus),
    ("dccp/cubic", "#0b3d6b", Marker::Arrow),
    ("dccp/bbr", "#b8860b", Marker::ArrowDown),
    ("dccp/ccid4", "#9d6bd6", Marker::Slanted),
    ("tcp/newreno", "#d55e00", Marker::Square),
    ("tcp/bic", "#e69f00", Marker::TriangleDown),
    ("tcp/cubic", "#009e73", Marker::Triangle),
    ("tcp/cubic-rfc9438", "#882255", Marker::Diamond),
    ("tcp/highspeed", "#56b4e9", Marker::TriangleRight),
    ("tcp/htcp", "#00a5c8", Marker::Pentagon),
    ("tcp/hybla", "#117733", Marker::Hexagon),
    ("tcp/illinois", "#332288", Marker::Star),
    ("tcp/lp", "#999933", Marker::Bar),
    ("tcp/scalable", "#aa4499", Marker::TriangleLeft),
    ("tcp/vegas", "#44aa99", Marker::Hourglass),
    ("tcp/veno", "#8c564b", Marker::Bowtie),
    ("tcp/westwood", "#661100", Marker::Pillar),
    ("tcp/yeah", "#6677cc", Marker::Arch),
    ("tcp/compound", "#222222", Marker::Chevron),
    ("tcp/bbr", "#e7298a", Marker::TallDiamond),
    ("udp", "#6b6b6b", Marker::Cross),
];

/// The style of a protocol.
pub fn style_of(protocol: &Protocol) -> Style {
    let row = STYLES.iter().find(|(name, ..)| *name == protocol.name);
    let &(_, colour, marker) = row.expect("a test has a style for every protocol");
    Style { colour, marker }
}

#[cfg(test)]
mod tests {
    use udccp_scenario::PROTOCOLS;

    use super::*;

    #[test]
    fn every_protocol_has_a_style() {
        let styled: Vec<&str> = STYLES.iter().map(|(name, ..)| *name).collect();
        let all: Vec<&str> = PROTOCOLS.iter().map(|p| p.name).collect();
        assert_eq!(styled, all);
    }

    /// Any two markers differ, for readers with colour blindness. Colours differ enough to tell
    /// lines without markers apart.
    #[test]
    fn no_two_styles_are_alike() {
        for (i, (a, a_colour, a_marker)) in STYLES.iter().enumerate() {
            for (b, b_colour, b_marker) in &STYLES[..i] {
                assert_ne!(a_marker, b_marker, "{a} and {b}");
                let apart = distance(a_colour, b_colour);
                assert!(apart >= 40.0, "{a} and {b}: {apart:.0}");
            }
        }
    }

    /// Distance of two colours in the RGB cube of side 255.
    fn distance(a: &str, b: &str) -> f64 {
        let part = |text: &str, i: usize| {
            f64::from(u8::from_str_radix(&text[2 * i + 1..2 * i + 3], 16).expect("a colour"))
        };
        (0..3).map(|i| part(a, i) - part(b, i)).map(|d| d * d).sum::<f64>().sqrt()
    }
}
