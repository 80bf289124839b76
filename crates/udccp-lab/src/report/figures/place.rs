//! Places labels on an axis.

use udccp_base::{DataRate, DataSize, Duration};

use super::super::table_header::axis_name;

/// The positions of labels: by value in ms, Mbit/s, kB or percent, otherwise evenly spaced.
pub(super) fn places(labels: &[String]) -> Vec<(f64, String)> {
    let number = |label: &String| {
        let time = label.parse::<Duration>().ok().map(Duration::as_millis_f64);
        let rate = || label.parse::<DataRate>().ok().map(DataRate::as_mbps);
        let size = || label.parse::<DataSize>().ok().map(|s| s.bytes() as f64 / 1000.0);
        let bare = || label.split(' ').next().and_then(|n| n.parse::<f64>().ok());
        time.or_else(rate).or_else(size).or_else(bare)
    };
    let numbers: Option<Vec<f64>> = labels.iter().map(number).collect();
    let even = || (0..labels.len()).map(|i| i as f64).collect();
    let places: Vec<f64> = numbers.unwrap_or_else(even);
    places.into_iter().zip(labels.iter().cloned()).collect()
}

/// The unit shared by all labels, as in `25 ms` and `50 ms`.
fn common_unit(places: &[(f64, String)]) -> Option<&str> {
    let unit = |label: &'_ str| label.find(' ').map(|i| i + 1);
    let first = places.first()?.1.as_str();
    let shared = &first[unit(first)?..];
    let is_number = first.split(' ').next().is_some_and(|n| n.parse::<f64>().is_ok());
    let same = |(_, l): &(f64, String)| unit(l).is_some_and(|i| l[i..] == *shared);
    (is_number && places.iter().all(same)).then_some(shared)
}

/// Tick labels without the shared unit, which the axis title has.
pub(super) fn ticks(places: &[(f64, String)]) -> Vec<(f64, String)> {
    let Some(unit) = common_unit(places) else {
        let title = |l: &String| udccp_scenario::protocol::title_of(l).to_owned();
        return places.iter().map(|(x, l)| (*x, title(l))).collect();
    };
    let bare = |label: &str| label.trim_end_matches(unit).trim_end().to_owned();
    places.iter().map(|(x, label)| (*x, bare(label))).collect()
}

/// The title of an axis, with the unit shared by its labels.
pub(super) fn axis_title(axis: &str, places: &[(f64, String)]) -> String {
    let name = if axis == "rtt" { "round-trip time" } else { axis_name(axis) };
    common_unit(places).map_or_else(|| name.to_owned(), |unit| format!("{name}, {unit}"))
}
