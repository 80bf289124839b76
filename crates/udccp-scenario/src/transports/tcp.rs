//! TCP: the model with the settings of a profile and the options of a flow.

use core::net::SocketAddr;

use udccp_base::Seed;
use udccp_cc::{
    Algorithm, BbrConfig, BicConfig, CompoundConfig, CubicConfig, GrowthAfterCut, HighSpeedConfig,
    HtcpConfig, HyStart, HyblaConfig, IllinoisConfig, LpConfig, ScalableConfig, VegasConfig,
    VenoConfig, WestwoodConfig, YeahConfig,
};
use udccp_sim::PairAddresses;
use udccp_tcp::{
    AckCounting, DelayedAck, LossDetection, SharedTcpConfig, TcpConfig, TcpReceiver, TcpSender,
    WindowReduction,
};

use super::dccp::keep;
use super::{CLIENT_PORT, Ends, SERVER_PORT, Shared};
use crate::schema::{self, Flow, Reduction, TcpOptions, TcpProfile};

pub(super) fn build(
    flow: &Flow,
    at: PairAddresses,
    seed: Seed,
    algorithm: Option<&Algorithm>,
    configs: &mut Shared<SharedTcpConfig>,
) -> Result<Ends, String> {
    let mut config = config(flow)?;
    if let Some(algorithm) = algorithm {
        config.algorithm = algorithm.clone();
    }
    let config = configs.of(config);
    let client = SocketAddr::new(at.sender, CLIENT_PORT);
    let server = SocketAddr::new(at.receiver, SERVER_PORT);
    let sender = TcpSender::new(client, server, config.clone(), seed.derive("client"));
    let receiver = TcpReceiver::new(server, client, config, seed.derive("server"));
    Ok(Ends { sender: Box::new(sender), receiver: Box::new(receiver) })
}

/// The TCP settings of a flow.
pub(super) fn config(flow: &Flow) -> Result<TcpConfig, String> {
    let options = &flow.tcp;
    let algorithm = algorithm(flow.protocol.name, options)?;
    let mut config = match options.profile {
        TcpProfile::Modern => TcpConfig::new(algorithm),
        TcpProfile::Linux2622 => TcpConfig::linux_2_6_22(algorithm),
        TcpProfile::Rfc => TcpConfig::rfc(algorithm),
    };
    // Simulated segments have no bit errors, because links drop the segments that they corrupt.
    config.receive_checksum_offload = true;
    config.mss = u16::try_from(flow.packet.bytes().saturating_sub(40)).unwrap_or(u16::MAX);
    if options.delayed_ack == Some(false) {
        config.delayed_ack = DelayedAck::OFF;
    }
    if let Some(counting) = options.ack_counting {
        config.ack_counting = match counting {
            schema::AckCounting::Segments => AckCounting::Segments,
            schema::AckCounting::AtMostTwo => AckCounting::AtMost(2),
            schema::AckCounting::OnePerAck => AckCounting::OnePerAck,
            schema::AckCounting::OneInSlowStart => AckCounting::OneInSlowStart,
            schema::AckCounting::OneInAvoidance => AckCounting::OneInAvoidance,
        };
    }
    if let Some(reduction) = options.window_reduction {
        config.window_reduction = match reduction {
            Reduction::AtOnce => WindowReduction::AtOnce,
            Reduction::Proportional => WindowReduction::Proportional,
            Reduction::RateHalving => WindowReduction::RateHalving,
        };
    }
    if let Some(detection) = options.loss_detection {
        config.loss_detection = match detection {
            schema::LossDetection::Sack => LossDetection::Sack,
            schema::LossDetection::RackTlp => LossDetection::RackTlp,
        };
    }
    limits(&mut config, options);
    Ok(config)
}

fn limits(config: &mut TcpConfig, options: &TcpOptions) {
    if let Some(window) = options.initial_window {
        config.initial_window = window.0;
    }
    if let Some(window) = options.max_window {
        config.max_cwnd = Some(window.0);
    }
    config.initial_ssthresh = options.initial_ssthresh.map(|threshold| threshold.0);
    if let Some(buffer) = options.receive_buffer {
        config.recv_buffer_bytes = u32::try_from(buffer.bytes()).unwrap_or(u32::MAX);
        config.opens_window = options.profile == TcpProfile::Modern;
    }
    if let Some(buffer) = options.send_buffer {
        config.send_buffer_bytes = buffer.bytes();
    }
    if let Some(min_rto) = options.min_rto {
        config.min_rto = min_rto;
    }
    if let Some(timestamps) = options.timestamps {
        config.timestamps = timestamps;
    }
    if let Some(offload) = options.offload {
        config.offload = offload;
    }
    if let Some(small_queues) = options.small_queues {
        config.small_queues = small_queues;
    }
    if let Some(ecn) = options.ecn {
        config.ecn = ecn;
    }
}

/// The congestion control of a protocol.
fn algorithm(name: &str, options: &TcpOptions) -> Result<Algorithm, String> {
    if let Some(cut) = options.window_cut {
        return match name {
            "tcp/newreno" => {
                Ok(Algorithm::NewReno { cut: keep(cut), after_cut: GrowthAfterCut::Pauses })
            }
            _ => Err(format!("window_cut is for tcp/newreno; {name} has its own cut")),
        };
    }
    let is_modern = options.profile == TcpProfile::Modern;
    Ok(match name {
        "tcp/newreno" => Algorithm::NEW_RENO,
        "tcp/bic" if is_modern => Algorithm::Bic(BicConfig::linux_6_1()),
        "tcp/bic" => Algorithm::Bic(BicConfig::linux_2_6()),
        "tcp/cubic" => Algorithm::Cubic(CubicConfig::linux_2_6()),
        "tcp/cubic-rfc9438" if is_modern => Algorithm::Cubic(CubicConfig::linux_6_1()),
        "tcp/cubic-rfc9438" => Algorithm::Cubic(CubicConfig::with_hystart(HyStart::Classic)),
        "tcp/highspeed" if is_modern => Algorithm::HighSpeed(HighSpeedConfig::linux_6_1()),
        "tcp/highspeed" => Algorithm::HighSpeed(HighSpeedConfig::default()),
        "tcp/htcp" => Algorithm::Htcp(HtcpConfig::default()),
        "tcp/hybla" => Algorithm::Hybla(HyblaConfig::default()),
        "tcp/illinois" if is_modern => Algorithm::Illinois(IllinoisConfig::linux_6_1()),
        "tcp/illinois" => Algorithm::Illinois(IllinoisConfig::default()),
        "tcp/lp" => Algorithm::Lp(LpConfig::default()),
        "tcp/scalable" if options.profile == TcpProfile::Linux2622 => {
            Algorithm::Scalable(ScalableConfig::linux_2_6())
        }
        "tcp/scalable" => Algorithm::Scalable(ScalableConfig::default()),
        "tcp/vegas" => Algorithm::Vegas(VegasConfig::default()),
        "tcp/veno" => Algorithm::Veno(VenoConfig::default()),
        "tcp/westwood" => Algorithm::Westwood(WestwoodConfig::default()),
        "tcp/yeah" => Algorithm::Yeah(YeahConfig::default()),
        "tcp/bbr" if is_modern => Algorithm::Bbr(BbrConfig::linux_6_1()),
        "tcp/bbr" => Algorithm::Bbr(BbrConfig::default()),
        "tcp/compound" => Algorithm::Compound(CompoundConfig::default()),
        _ => return Err(format!("there is no congestion control for {name}")),
    })
}
