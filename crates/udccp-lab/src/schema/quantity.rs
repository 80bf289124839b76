//! Converts labels of axes to numbers, since as text "100 ms" sorts before "50 ms".

use udccp_base::{DataRate, DataSize, Duration};

use super::{Limit, Percent};

/// The number in a label, with the unit that ends its column's name; `None` if the label is not a
/// quantity.
pub(crate) fn number(label: &str) -> Option<(&'static str, f64)> {
    if let Ok(time) = label.parse::<Duration>() {
        return Some(("s", time.as_secs_f64()));
    }
    if let Ok(rate) = label.parse::<DataRate>() {
        return Some(("bit_per_s", rate.bits_per_sec() as f64));
    }
    if let Ok(Percent(percent)) = label.parse() {
        return Some(("percent", percent));
    }
    match label.parse() {
        Ok(Limit::Bdp(factor) | Limit::BdpBytes(factor)) => return Some(("bdp", factor)),
        Ok(Limit::Packets(packets)) => return Some(("packets", f64::from(packets))),
        Ok(Limit::Bytes(size)) => return Some(("bytes", bytes(size))),
        Ok(Limit::BdpAndPackets(..) | Limit::Unlimited) | Err(_) => {}
    }
    // Rust also parses words such as "inf" and "nan" as numbers.
    let is_number = label.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let bare = label.parse::<f64>().ok().filter(|x| is_number && x.is_finite());
    bare.map(|x| ("number", x))
}

fn bytes(size: DataSize) -> f64 {
    size.bytes() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_quantities_have_a_number_in_a_base_unit() {
        for (label, expected) in [
            ("25 ms", ("s", 0.025)),
            ("120 us", ("s", 0.000_12)),
            ("2 s", ("s", 2.0)),
            ("100 Mbit/s", ("bit_per_s", 1e8)),
            ("1.5 MiB", ("bytes", 1_572_864.0)),
            ("64 kB", ("bytes", 64_000.0)),
            ("12.5 %", ("percent", 12.5)),
            ("0.5 bdp", ("bdp", 0.5)),
            ("0.5 bdp bytes", ("bdp", 0.5)),
            ("20 packets", ("packets", 20.0)),
            ("32", ("number", 32.0)),
            ("-0.5", ("number", -0.5)),
        ] {
            assert_eq!(number(label), Some(expected), "{label}");
        }
        for label in ["dccp/ccid2", "unlimited", "true", "nan", "inf", "rfc3390", "4 tcp", ""] {
            assert_eq!(number(label), None, "{label}");
        }
    }
}
