//! Computes a record from a run, with the definitions of `udccp-metrics`.

use udccp_base::Duration;
use udccp_link::DelayHistogram;
use udccp_metrics::{
    Measured, Undefined, coefficient_of_variation, epsilon, equation_ratio, goodput_ratio_percent,
    jain, jain_over_time, log_utility, loss_event_percent, loss_on_all_links_percent, loss_percent,
    max_min_ratio, throughput_mbps,
};
use udccp_sim::{FlowResult, FlowSample, RunResult, SenderSample};

use crate::outcome::{self, QuantileRecord};
use crate::record::{CostRecord, FlowRecord, Record, SIM, SeriesRecord, SystemRecord};
use crate::schema::{Flow, Measure, SCHEMA, Scenario};
use crate::version::VERSION;

/// Computes the record of a run, with all metrics. `result` is from the simulator, or from another
/// backend in the same form. What it has of a flow is freed when the flow's record is made, since
/// the series of both are the larger part of a long run's memory.
pub fn record_of(
    name: &str,
    scenario: &Scenario,
    seed: u64,
    mut result: RunResult,
    cpu_s: f64,
) -> Record {
    let measure = &scenario.time.measure;
    let mut record = Record {
        schema: SCHEMA,
        scenario: name.to_owned(),
        seed,
        version: VERSION.to_owned(),
        backend: SIM.to_owned(),
        measured_s: [measure.from.as_secs_f64(), measure.to.as_secs_f64()],
        event_hash: format!("{:016x}", result.hash),
        ..Record::default()
    };
    record.system = system_record(&mut record, measure, &result);
    record.links = outcome::links(&result, measure.to - measure.from);
    let (events, packets) = (result.cost.events, result.cost.packets);
    record.cost = CostRecord { cpu_s, events, packets };
    let entries = result.flows.iter().map(|flow| entries(flow)).sum();
    record.flows.reserve_exact(result.flows.len());
    for (flow, found) in scenario.flows.iter().zip(result.flows.drain(..)) {
        let flow = flow_record(&mut record, flow, measure, (&found, entries));
        record.flows.push(flow);
    }
    record
}

fn flow_record(
    record: &mut Record,
    flow: &Flow,
    measure: &Measure,
    (found, entries): (&FlowResult, u64),
) -> FlowRecord {
    let window = &found.measured;
    let span_s = window.span.as_secs_f64();
    let mut keep = |key: &str, value| record.keep(format!("flows.{}.{key}", found.name), value);
    let (sent, jitter) = (window.sent.packets, &window.jitter);
    let lost = loss_percent(sent, sent - window.dropped.min(sent));
    let both_ways = window.mean_transit_with(&found.measured_reverse);
    let lost_on_all_links = loss_on_all_links_percent(window.dropped, entries);
    let event_percent = congestion_events(found, measure).and_then(|e| loss_event_percent(e, sent));
    let crossing = found.crossings.first().ok_or(Undefined::NoSamples);
    let rates = measured_samples(&found.series, measure).map(|s| exact_mbps(s.wire_bytes, s.span));
    let rates: Vec<f64> = rates.collect();
    let against_equation = |percent: f64| {
        equation_ratio(sent as f64 / span_s, mean_rtt(found, measure)?, percent / 100.0)
    };
    FlowRecord {
        name: found.name.clone(),
        protocol: flow.protocol.name.to_owned(),
        start_s: found.start.as_secs_f64(),
        packet_bytes: flow.packet.bytes(),
        throughput_mbps: keep("throughput_mbps", throughput_mbps(window.delivered.bytes, span_s)),
        goodput_mbps: keep("goodput_mbps", throughput_mbps(window.goodput_bytes, span_s)),
        router_throughput_mbps: keep(
            "router_throughput_mbps",
            crossing.and_then(|c| throughput_mbps(c.data.bytes, span_s)),
        ),
        router_both_ways_mbps: keep(
            "router_both_ways_mbps",
            crossing.and_then(|c| throughput_mbps(c.data.bytes + c.acks.bytes, span_s)),
        ),
        goodput_ratio_percent: keep(
            "goodput_ratio_percent",
            goodput_ratio_percent(window.goodput_bytes, window.sent.bytes),
        ),
        smoothness: keep("smoothness", coefficient_of_variation(&rates)),
        loss_percent: keep("loss_percent", lost),
        loss_on_all_links_percent: keep("loss_on_all_links_percent", lost_on_all_links),
        loss_event_percent: keep("loss_event_percent", event_percent),
        equation_ratio: keep("equation_ratio", lost.and_then(against_equation)),
        equation_ratio_of_events: keep(
            "equation_ratio_of_events",
            event_percent.and_then(against_equation),
        ),
        delay_ms: keep("delay_ms", milliseconds(window.delay.mean())),
        delay_both_ways_ms: keep("delay_both_ways_ms", milliseconds(both_ways)),
        delay_quantiles_ms: quantiles(&window.delay, |q, v| {
            keep(&format!("delay_quantiles_ms.{q}"), v)
        }),
        jitter_ms: keep("jitter_ms", milliseconds(jitter.rfc3550)),
        jitter_transit_ms: keep("jitter_transit_ms", milliseconds(jitter.transit)),
        jitter_arrival_gap_ms: keep("jitter_arrival_gap_ms", milliseconds(jitter.arrival_gap)),
        jitter_per_number_ms: milliseconds(jitter.per_number).ok(),
        packets_sent: found.forward.sent.packets,
        packets_delivered: found.forward.delivered.packets,
        goodput_bytes: found.goodput_bytes,
        congestion_events: found.last_probe.congestion_events,
        timeouts: found.last_probe.timeouts,
        retransmits: found.last_probe.retransmits,
        messages: found.messages.as_ref().map(outcome::completions),
        responses: found.responses.as_ref().map(outcome::completions),
        transfers: found.transfers.as_ref().map(outcome::completions),
        crossings: outcome::crossings(found),
        series: series(&found.series),
    }
}

/// The links that a flow's data packets have to cross in the measured interval, counted for every
/// packet: the sender's access link, those between routers, and the receiver's.
fn entries(found: &FlowResult) -> u64 {
    found.measured.sent.packets * (found.crossings.len() as u64 + 2)
}

fn series(samples: &[FlowSample]) -> SeriesRecord {
    SeriesRecord {
        t_s: samples.iter().map(|s| s.end.as_secs_f64()).collect(),
        throughput_mbps: samples.iter().map(|s| s.throughput().as_mbps()).collect(),
        goodput_mbps: samples.iter().map(|s| s.goodput().as_mbps()).collect(),
        cwnd_packets: samples.iter().map(|s| s.sender.cwnd_packets.get()).collect(),
        srtt_ms: of_sender(samples, |s| s.srtt.get().map(Duration::as_millis_f64)),
        allowed_rate_mbps: of_sender(samples, |s| s.x_bytes_per_sec.get().map(|x| x * 8e-6)),
        loss_event_percent: of_sender(samples, |s| s.loss_event_rate.get().map(|p| 100.0 * p)),
    }
}

/// Empty if the sender never has a value.
fn of_sender(samples: &[FlowSample], value: fn(&SenderSample) -> Option<f64>) -> Vec<Option<f64>> {
    let values = || samples.iter().map(|s| value(&s.sender));
    if values().any(|v| v.is_some()) { values().collect() } else { Vec::new() }
}

/// The rate of bytes in a time, in Mbit/s; not in whole bit/s, which are coarse for tiny rates.
fn exact_mbps(bytes: u64, span: Duration) -> f64 {
    throughput_mbps(bytes, span.as_secs_f64()).unwrap_or_default()
}

/// The samples of the intervals that end in the measured interval.
fn measured_samples<'a>(
    series: &'a [FlowSample],
    measure: &Measure,
) -> impl Iterator<Item = &'a FlowSample> + use<'a> {
    let (from, to) = (measure.from, measure.to);
    series.iter().filter(move |s| s.end > from && s.end <= to)
}

/// Mean of the sender's smoothed round-trip times at the ends of the intervals, in seconds.
fn mean_rtt(found: &FlowResult, measure: &Measure) -> Result<f64, Undefined> {
    let known = measured_samples(&found.series, measure).filter_map(|s| s.sender.srtt.get());
    let (sum, n) = known.fold((0.0, 0_u32), |(sum, n), rtt| (sum + rtt.as_secs_f64(), n + 1));
    if n == 0 { Err(Undefined::NoRoundTripTime) } else { Ok(sum / f64::from(n)) }
}

/// Congestion events of the sender in the measured part of the run.
fn congestion_events(found: &FlowResult, measure: &Measure) -> Result<u64, Undefined> {
    if found.last_probe.cwnd_packets.is_none() && found.last_probe.x_bytes_per_sec.is_none() {
        return Err(Undefined::NotControlled);
    }
    if let Some(events) = found.measured_events {
        return Ok(events);
    }
    let until = |end: Duration| {
        let last = found.series.iter().rfind(|s| s.end <= end);
        last.map_or(0, |s| s.sender.congestion_events)
    };
    Ok(until(measure.to).saturating_sub(until(measure.from)))
}

fn milliseconds(value: Option<Duration>) -> Measured {
    value.map(Duration::as_millis_f64).ok_or(Undefined::NoSamples)
}

fn quantiles(
    delay: &DelayHistogram,
    mut keep: impl FnMut(&str, Measured) -> Option<f64>,
) -> QuantileRecord {
    let mut of = |name: &str, q| keep(name, milliseconds(delay.quantile(q)));
    QuantileRecord { p50: of("p50", 0.50), p95: of("p95", 0.95), p99: of("p99", 0.99) }
}

fn system_record(record: &mut Record, measure: &Measure, result: &RunResult) -> SystemRecord {
    let span_s = (measure.to - measure.from).as_secs_f64();
    let rate = |bytes: u64| throughput_mbps(bytes, span_s).unwrap_or_default();
    let measured = || result.flows.iter().map(|f| &f.measured);
    let wire: Vec<f64> = measured().map(|m| rate(m.delivered.bytes)).collect();
    let payload: Vec<f64> = measured().map(|m| rate(m.goodput_bytes)).collect();
    let equal = vec![payload.iter().sum::<f64>() / payload.len().max(1) as f64; payload.len()];
    let forward = &result.system.forward;
    let mut keep = |key: &str, value| record.keep(format!("system.{key}"), value);
    SystemRecord {
        jain: keep("jain", jain_of_series(measure, result, |s| exact_mbps(s.wire_bytes, s.span))),
        jain_goodput: keep(
            "jain_goodput",
            jain_of_series(measure, result, |s| exact_mbps(s.goodput_bytes, s.span)),
        ),
        jain_of_means: keep("jain_of_means", jain(&wire)),
        jain_goodput_of_means: keep("jain_goodput_of_means", jain(&payload)),
        max_min_ratio: keep("max_min_ratio", max_min_ratio(&payload, &equal)),
        epsilon: keep("epsilon", epsilon(&payload)),
        log_utility: keep("log_utility", log_utility(&payload)),
        utilisation_percent: Some(100.0 * forward.utilisation),
        queue_delay_ms: quantiles(&forward.measured.queue_delay, |q, v| {
            keep(&format!("queue_delay_ms.{q}"), v)
        }),
        packets_dropped: forward.whole.dropped_total().packets,
    }
}

/// Mean over the measured intervals of Jain's index of the flows' rates.
fn jain_of_series(
    measure: &Measure,
    result: &RunResult,
    rate: impl Fn(&FlowSample) -> f64,
) -> Measured {
    let flows = result.flows.iter();
    let rates = flows.map(|f| measured_samples(&f.series, measure).map(&rate).collect());
    let series: Vec<Vec<f64>> = rates.collect();
    let slices: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
    jain_over_time(&slices).mean()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: rates in whole bit/s made a slow flow look smooth, or silent.
    #[test]
    fn rates_below_one_bit_per_second_differ() {
        let ten = Duration::from_secs(10);
        assert_eq!(exact_mbps(1, ten), 0.8e-6);
        let rates = [1, 2].map(|bytes| exact_mbps(bytes, ten));
        let smoothness = coefficient_of_variation(&rates).unwrap();
        assert!((smoothness - 0.5_f64.sqrt() / 1.5).abs() < 1e-12, "{smoothness}");
        assert_eq!(exact_mbps(7, Duration::ZERO), 0.0);
    }
}
