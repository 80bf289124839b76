//! Runs matrix entries on a kernel that has DCCP.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use udccp_netns::RoutedPair;

use crate::capture::Capture;
use crate::hosts::network_of;
use crate::peer::{self, PeerReport, Side};
use crate::plan::{MatrixEntry, TestCase, Trial};

/// The reports of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialResult {
    /// The cell.
    pub entry: MatrixEntry,
    /// The number of its seed.
    pub number: u8,
    /// What the client did and observed.
    pub client: PeerReport,
    /// What the server did and observed.
    pub server: PeerReport,
}

impl TrialResult {
    /// The entry and the number of its seed.
    pub const fn which(&self) -> (MatrixEntry, u8) {
        (self.entry, self.number)
    }
}

impl Trial {
    /// Names of the run's files: its reports and its packets.
    pub fn files(&self) -> [String; 2] {
        [report_file(self), capture_file(self)]
    }
}

/// Name of the file with the reports of a run.
pub(crate) fn report_file(trial: &Trial) -> String {
    format!("{trial}.json")
}

/// Name of the file with the packets of a run.
pub(crate) fn capture_file(trial: &Trial) -> String {
    format!("{trial}.pcap")
}

/// Runs an entry and writes a capture and a report to `folder`. Randomness comes from this kernel:
/// a guest booted with the trial's seed runs only one entry.
///
/// # Errors
/// The network cannot be created, or the folder is not writable.
pub fn run_trial(trial: &Trial, folder: &Path) -> io::Result<TrialResult> {
    let (Trial { entry, number }, file) = (*trial, folder.join(capture_file(trial)));
    let (client, server) =
        one(&entry, &file).map_err(|e| io::Error::new(e.kind(), format!("{trial}: {e}")))?;
    let result = TrialResult { entry, number, client, server };
    std::fs::write(folder.join(report_file(trial)), serde_json::to_vec_pretty(&result)?)?;
    Ok(result)
}

/// Runs client and server and returns their reports.
fn one(entry: &MatrixEntry, file: &Path) -> io::Result<(PeerReport, PeerReport)> {
    let network = network_of(entry)?;
    let [client, server] = Side::of(entry, RoutedPair::addresses(entry.v6));
    let (case, entry) = (entry.case, *entry);
    // Of a long transfer, only packet types are evaluated.
    let snaplen = if case == TestCase::Bulk { 128 } else { 65_535 };
    let capture = Capture::start(&network.client, file, snaplen)?;
    let (tell, hear) = std::sync::mpsc::channel();
    let serving = network.server.spawn(move || {
        let listener = server.listen(entry.server);
        let listening = tell.send(listener.as_ref().map(drop).map_err(Clone::clone));
        let never_accepts =
            matches!(case, TestCase::BadService | TestCase::Refused | TestCase::Traceroute);
        match listener {
            Ok(listener) if listening.is_ok() && !never_accepts => {
                (peer::server(case, &*listener), Some(listener))
            }
            Ok(listener) => (PeerReport::default(), Some(listener)),
            Err(_) => (PeerReport::default(), None),
        }
    })?;
    let ready = hear.recv().map_err(|_| io::Error::other("the server is gone"))?;
    ready.map_err(|why| io::Error::other(format!("the server cannot listen: {why}")))?;
    let calling = network.client.spawn(move || peer::client(case, entry.client, &client))?;
    let client = calling.join().map_err(|_| io::Error::other("the client panicked"))?;
    // Keep the listener until the client has its answer.
    let (server, listener) = serving.join().map_err(|_| io::Error::other("the server panicked"))?;
    // The last packets may still be in flight.
    peer::wait(std::time::Duration::from_millis(500));
    drop(listener);
    capture.finish()?;
    Ok((client, server))
}
