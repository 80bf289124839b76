//! The cases: number of flows, their protocols, and the path.

use std::path::Path;

use udccp_base::{DataRate, Duration};
use udccp_lab::RunOptions;
use udccp_lab::schema::Experiment;
use udccp_lab::{Record, document};

use crate::cost::{self, Cost};

/// The protocols of the flows, in rotation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) name: &'static str,
    pub(crate) protocols: [&'static str; 2],
}

pub(crate) const MIXES: [Mix; 4] = [
    Mix { name: "CCID 2 + CUBIC", protocols: ["dccp/ccid2", "tcp/cubic"] },
    Mix { name: "CCID 2 + NewReno", protocols: ["dccp/ccid2", "tcp/newreno"] },
    Mix { name: "CCID 2 + CCID 2", protocols: ["dccp/ccid2", "dccp/ccid2"] },
    Mix { name: "CUBIC + CUBIC", protocols: ["tcp/cubic", "tcp/cubic"] },
];

/// A row of the benchmark: bulk flows over a dumbbell with a queue of one BDP, all started within
/// the first second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) mix: Mix,
    pub(crate) flows: u64,
    pub(crate) mbps: u64,
    pub(crate) rtt_ms: u64,
    pub(crate) seconds: u64,
}

impl Case {
    /// Packets of 1500 bytes that fill the path.
    pub(crate) fn bdp_packets(&self) -> u64 {
        let rtt = Duration::from_millis(self.rtt_ms);
        DataRate::from_mbps(self.mbps).bytes_in(rtt).bytes() / 1500
    }

    pub(crate) fn name(&self) -> String {
        let Self { mix, flows, mbps, rtt_ms, .. } = self;
        let rate = match mbps {
            1000.. => format!("{} Gbit/s", mbps / 1000),
            _ => format!("{mbps} Mbit/s"),
        };
        format!("{:17}{flows:4} flows {rate:>10} {rtt_ms:>4} ms", mix.name)
    }

    /// The cheapest of `runs` runs.
    pub(crate) fn run(&self, runs: u64) -> Cost {
        cost::best((0..runs).map(|_| {
            let (record, heap) = cost::with_heap(|| self.record());
            Cost::of(&record, heap)
        }))
    }

    fn record(&self) -> Record {
        let root = document::parse("benchmark", self.text()).unwrap_or_else(|e| panic!("{e}"));
        let experiment = Experiment::from_node(root, Path::new("benchmark"));
        let experiment = experiment.unwrap_or_else(|e| panic!("{e}"));
        let scenario = experiment.scenario_with(&Vec::new(), &[]).unwrap_or_else(|e| panic!("{e}"));
        let run = udccp_lab::run(&experiment.id, &scenario, 1, RunOptions::default());
        run.expect("a run of the benchmark's scenario")
    }

    /// The scenario. Access links are ten times as fast as the bottleneck, and no buffer of a host
    /// limits a window.
    fn text(&self) -> String {
        let Self { mix, flows, mbps, rtt_ms, seconds } = self;
        let access = mbps * 10;
        let mut text = format!(
            "schema = 1\nid = \"speed\"\n[topology]\nshape = \"dumbbell\"\n\
             access = {{ rate = \"{access} Mbit/s\", delay = \"0 ms\" }}\n\
             bottleneck = {{ rate = \"{mbps} Mbit/s\", rtt = \"{rtt_ms} ms\", \
             queue = \"drop-tail\", limit = \"1.0 bdp\" }}\n\
             [time]\nduration = \"{seconds} s\"\nphase = \"1 s\"\n\
             measure = {{ from = \"1 s\", to = \"{seconds} s\", every = \"1 s\" }}\n"
        );
        // With a fixed buffer, each segment is acknowledged until the window is open.
        let buffers = match mbps * rtt_ms {
            ..30_000 => "",
            _ => "tcp = { receive_buffer = \"512 MB\", send_buffer = \"1 GB\" }\n",
        };
        for flow in 0..*flows {
            let protocol = mix.protocols[flow as usize % mix.protocols.len()];
            text += &format!(
                "[[flow]]\nname = \"f{flow}\"\nprotocol = \"{protocol}\"\nstart = \"0 s\"\n\
                 traffic = \"bulk\"\n{buffers}"
            );
        }
        text
    }
}
