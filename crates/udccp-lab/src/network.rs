//! From a scenario to the network that the simulator runs.

use udccp_base::Seed;
use udccp_sim::{Bulk, ConstantRate, Dumbbell, DumbbellConfig, PairConfig, Source};

use crate::run::RunError;
use crate::schema::{Flow, Scenario, Traffic};
use crate::transports;

/// The network of a scenario with all of its flows.
///
/// # Errors
/// Flow settings that contradict each other.
pub(crate) fn network(scenario: &Scenario, seed: Seed) -> Result<Dumbbell, RunError> {
    let topology = &scenario.topology;
    let rtt = topology.rtt();
    let forward = topology.bottleneck.bottleneck_config(topology.access_delays(), rtt);
    let reverse = forward.without_chance();
    let access = topology.access.access_config(rtt);
    let mut network = Dumbbell::new(DumbbellConfig { forward, reverse });
    for flow in &scenario.flows {
        let own = seed.derive("flow").derive(&flow.name);
        let ends = transports::build(flow, network.next_addresses(), own)
            .map_err(|why| RunError::Flow { flow: flow.name.clone(), why })?;
        let pair = PairConfig::new(&flow.name, ends.sender, ends.receiver, source(flow));
        network.add_pair(PairConfig {
            sender_access: access.clone(),
            receiver_access: access.clone(),
            start: flow.start,
            start_jitter: scenario.time.phase,
            stop: flow.stop,
            ..pair
        });
    }
    Ok(network)
}

fn source(flow: &Flow) -> Box<dyn Source> {
    match flow.traffic {
        Traffic::Bulk => Box::new(Bulk::new()),
        Traffic::ConstantRate { rate, size } => {
            let size = u32::try_from(size.bytes()).unwrap_or(u32::MAX);
            Box::new(ConstantRate::new(rate, size))
        }
    }
}
