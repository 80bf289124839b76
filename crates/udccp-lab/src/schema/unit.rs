//! Printed units and the factors between them.

/// The printed units for each base unit, with their factors.
const UNITS: [(&str, &[(&str, f64)]); 4] = [
    (
        "Mbit/s",
        &[("Gbit/s", 1e-3), ("kbit/s", 1e3), ("bit/s", 1e6), ("MB/s", 0.125), ("kB/s", 125.0)],
    ),
    ("ms", &[("s", 1e-3), ("us", 1e3)]),
    ("s", &[("ms", 1e3), ("min", 1.0 / 60.0)]),
    ("%", &[("", 1e-2)]),
];

/// The factor from one unit to another; `None` if they measure different things.
pub(super) fn unit_factor(from: &str, to: &str) -> Option<f64> {
    if from == to {
        return Some(1.0);
    }
    let of = |base: &str, unit: &str| {
        let (_, others) = UNITS.iter().find(|(b, _)| *b == base)?;
        others.iter().find(|(u, _)| *u == unit).map(|(_, factor)| *factor)
    };
    let through_base = || {
        UNITS.iter().find_map(|(base, _)| {
            let out = |unit| if unit == *base { Some(1.0) } else { of(base, unit) };
            Some(out(to)? / out(from)?)
        })
    };
    of(from, to).or_else(|| of(to, from).map(|f| 1.0 / f)).or_else(through_base)
}

/// The units in which a metric with this base unit can be printed, the base unit first.
pub(super) fn units_like(base: &str) -> Vec<&str> {
    let others = UNITS.iter().find(|(known, _)| *known == base).map_or(&[][..], |(_, units)| units);
    core::iter::once(base).chain(others.iter().map(|(unit, _)| *unit)).collect()
}

/// The unit at the end of a column's header: `throughput_kbps` means kbit/s.
pub(super) fn unit_of_header(header: &str) -> Option<&'static str> {
    Some(match header.rsplit('_').next()? {
        "ms" => "ms",
        "s" => "s",
        "gbps" => "Gbit/s",
        "mbps" => "Mbit/s",
        "kbps" => "kbit/s",
        "percent" => "%",
        "db" => "dB",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert_both_ways_and_never_across_kinds() {
        assert_eq!(unit_factor("Mbit/s", "kbit/s"), Some(1e3));
        assert_eq!(unit_factor("kbit/s", "Mbit/s"), Some(1e-3));
        assert_eq!(unit_factor("kbit/s", "MB/s"), Some(1.25e-4));
        assert_eq!(unit_factor("s", "ms"), Some(1e3));
        assert_eq!(unit_factor("ms", "Mbit/s"), None);
        assert_eq!(unit_factor("", "dB"), None);
    }

    #[test]
    fn a_metric_names_the_units_that_it_prints_in() {
        assert_eq!(units_like("ms"), ["ms", "s", "us"]);
        assert_eq!(units_like("dB"), ["dB"]);
    }
}
