//! CCIDs on the command line.

use udccp::ccid::experimental;

/// Parses a CCID: a number or the name of an experiment.
pub(crate) fn parse(text: &str) -> Result<u8, String> {
    match text {
        "cubic" => Ok(experimental::CUBIC),
        "bbr" => Ok(experimental::BBR),
        number => {
            number.parse().map_err(|_| "expected a number from 0 to 255, `cubic` or `bbr`".into())
        }
    }
}

/// A CCID in the form that `--ccid` accepts.
pub(crate) fn name(ccid: u8) -> String {
    match ccid {
        experimental::CUBIC => "cubic".to_owned(),
        experimental::BBR => "bbr".to_owned(),
        number => number.to_string(),
    }
}
