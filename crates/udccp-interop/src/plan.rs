//! The matrix: which stacks, over which path, in which test case.

use std::fmt;

use serde::{Deserialize, Serialize};
use udccp_base::Seed;

/// The DCCP stack of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    /// Crate `udccp`, over a raw socket.
    Ours,
    /// The kernel.
    Linux,
}

/// The path between client and server. Both directions have 10 Mbit/s and 20 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// No impairments.
    Clean,
    /// 1 % of packets are lost each way.
    Lossy,
    /// 5 % are lost, 5 % are reordered, 2 % are duplicated.
    Rough,
}

/// What client and server do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestCase {
    /// The client sends and closes.
    ClientClose,
    /// The client sends, the server closes.
    ServerClose,
    /// The client sends and aborts the connection.
    Abort,
    /// The client requests a service that is not served.
    BadService,
    /// The client connects to a port where nothing listens.
    Refused,
    /// Client and server have different CCIDs.
    NoCommonCcid,
    /// As `ClientClose`; the client's checksums cover headers and eight bytes of data.
    PartialChecksum,
    /// Both send; the client closes.
    BothWays,
    /// The client sends for 60 s as fast as possible.
    Bulk,
    /// `traceroute -D` traces the path to the server.
    Traceroute,
}

/// One entry of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MatrixEntry {
    /// The client's stack.
    pub client: Stack,
    /// The server's stack.
    pub server: Stack,
    /// CCID of both directions.
    pub ccid: u8,
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// The path.
    pub condition: Condition,
    /// The test case.
    pub case: TestCase,
}

/// Seeds with which every entry is run.
pub const SEEDS: u8 = 5;

/// An entry with one of its seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trial {
    /// The cell.
    pub entry: MatrixEntry,
    /// The number of its seed, from 1.
    pub number: u8,
}

impl Trial {
    /// The seed of all randomness in the run. It depends only on the names of entry and number, so
    /// a run is the same whatever runs before or beside it.
    pub fn seed(&self) -> u64 {
        Seed(self.number.into()).derive(&self.entry.to_string()).0
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-seed{}", self.entry, self.number)
    }
}

impl TestCase {
    /// Test cases for every condition.
    pub const EVERYWHERE: [Self; 6] = [
        Self::ClientClose,
        Self::ServerClose,
        Self::Abort,
        Self::BadService,
        Self::Refused,
        Self::NoCommonCcid,
    ];

    /// Its name for readers.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClientClose => "client closes",
            Self::ServerClose => "server closes",
            Self::Abort => "client aborts",
            Self::BadService => "bad service code",
            Self::Refused => "refused",
            Self::NoCommonCcid => "no common CCID",
            Self::PartialChecksum => "partial checksum",
            Self::BothWays => "data both ways",
            Self::Bulk => "60 s as fast as it goes",
            Self::Traceroute => "traceroute -D",
        }
    }
}

impl Condition {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Clean, Self::Lossy, Self::Rough];

    /// Its name for readers.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Lossy => "1 % loss",
            Self::Rough => "5 % loss, reordering, copies",
        }
    }

    /// The parameters of `tc` after `netem`.
    pub(crate) const fn netem(self) -> &'static str {
        match self {
            Self::Clean => "delay 20ms rate 10mbit limit 120",
            Self::Lossy => "delay 20ms rate 10mbit limit 120 loss 1%",
            Self::Rough => "delay 20ms rate 10mbit limit 120 loss 5% reorder 5% duplicate 2%",
        }
    }
}

impl fmt::Display for MatrixEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |text: String| text.trim_matches('"').to_owned();
        let word = |value: Result<String, serde_json::Error>| name(value.unwrap_or_default());
        write!(
            f,
            "{}-{}-ccid{}-{}-{}-{}",
            word(serde_json::to_string(&self.client)),
            word(serde_json::to_string(&self.server)),
            self.ccid,
            if self.v6 { "ipv6" } else { "ipv4" },
            word(serde_json::to_string(&self.condition)),
            word(serde_json::to_string(&self.case)),
        )
    }
}

/// All entries, in the order in which they are run.
pub fn matrix() -> Vec<MatrixEntry> {
    let mut entries = Vec::new();
    for (client, server) in [(Stack::Ours, Stack::Linux), (Stack::Linux, Stack::Ours)] {
        for ccid in [2, 3] {
            for v6 in [false, true] {
                let entry =
                    |condition, case| MatrixEntry { client, server, ccid, v6, condition, case };
                for condition in Condition::ALL {
                    entries.extend(TestCase::EVERYWHERE.map(|case| entry(condition, case)));
                }
                entries.push(entry(Condition::Clean, TestCase::PartialChecksum));
                entries.push(entry(Condition::Clean, TestCase::BothWays));
            }
        }
    }
    for ccid in [2, 3] {
        for client in [Stack::Linux, Stack::Ours] {
            for server in [Stack::Linux, Stack::Ours] {
                let (condition, case) = (Condition::Clean, TestCase::Bulk);
                entries.push(MatrixEntry { client, server, ccid, v6: false, condition, case });
            }
        }
    }
    // traceroute needs SOCK_DCCP on its host.
    entries.extend([false, true].map(|v6| MatrixEntry {
        client: Stack::Linux,
        server: Stack::Ours,
        ccid: 2,
        v6,
        condition: Condition::Clean,
        case: TestCase::Traceroute,
    }));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_has_every_cell_once() {
        let entries = matrix();
        let mut names: Vec<String> = entries.iter().map(MatrixEntry::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), entries.len());
        assert_eq!(entries.len(), 2 * 2 * 2 * (3 * 6 + 2) + 2 * 4 + 2);
        assert!(names.contains(&"ours-linux-ccid2-ipv6-rough-server-close".to_owned()));
    }

    #[test]
    fn seeds_of_a_cell_do_not_depend_on_other_cells() {
        let trials = |entries: &[MatrixEntry]| -> Vec<Trial> {
            let of = |&entry: &MatrixEntry| (1..=SEEDS).map(move |number| Trial { entry, number });
            entries.iter().flat_map(of).collect()
        };
        let all = trials(&matrix());
        let mut seeds: Vec<u64> = all.iter().map(Trial::seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), matrix().len() * usize::from(SEEDS));
        // A single entry has the seeds that it has in the whole matrix; they never change.
        let rough = "ours-linux-ccid3-ipv4-rough-server-close";
        let one: Vec<MatrixEntry> =
            matrix().into_iter().filter(|c| c.to_string() == rough).collect();
        let alone: Vec<u64> = trials(&one).iter().map(Trial::seed).collect();
        let among = all.iter().filter(|t| t.entry == one[0]).map(Trial::seed);
        assert_eq!(alone, among.collect::<Vec<_>>());
        assert_eq!(alone[0], 2_664_214_329_209_422_615);
    }
}
