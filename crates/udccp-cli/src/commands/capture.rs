//! Flags for all commands that write captures.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use udccp_scenario::RunError;

/// Where captures go, and how much of each packet.
#[derive(Debug, clap::Args)]
pub(crate) struct CaptureArgs {
    /// Write a capture at each observation point (pcap, raw IP) to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,
    /// Bytes to keep of each captured packet; 128 are enough for the headers, `full` keeps all
    #[arg(long, value_name = "BYTES|full", default_value = "128", requires = "pcap",
          value_parser = snaplen)]
    pub(crate) snaplen: Snaplen,
}

/// What to do about a run that failed because its captures could not be written.
pub(crate) fn advice(error: &RunError) -> Option<&'static str> {
    let is_of_file = error.source().is_some_and(|cause| cause.is::<io::Error>());
    is_of_file.then_some("--pcap names another folder; the disk may be full")
}

/// Bytes to keep of each packet; `None` keeps all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snaplen(pub(crate) Option<u32>);

/// Parses a snap length; 0 means all, as in tcpdump.
fn snaplen(text: &str) -> Result<Snaplen, String> {
    match text {
        "full" | "0" => Ok(Snaplen(None)),
        number => number
            .parse()
            .map(|bytes| Snaplen(Some(bytes)))
            .map_err(|_| "write a number of bytes, or `full`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snaplen_is_a_number_of_bytes_or_full() {
        assert_eq!(snaplen("128"), Ok(Snaplen(Some(128))));
        assert_eq!((snaplen("full"), snaplen("0")), (Ok(Snaplen(None)), Ok(Snaplen(None))));
        assert!(snaplen("all").is_err() && snaplen("-1").is_err());
    }
}
