//! Creates the sockets and applications of a specification.

use std::net::SocketAddr;
use std::rc::Rc;

use udccp_base::{DataSize, Duration, Instant, Seed};
use udccp_scenario::schema::{CodecName, RandomVariable, Traffic};
use udccp_scenario::{MAX_TRANSFERS, source};
use udccp_sim::{Codec, Dialogue, DialogueSizes, Frames, Responder, Transfer, Voip, poisson};

use super::driver::{FlowDriver, Receiver};
use crate::error::AgentError;
use crate::socket::dccp::{Dccp, DccpHost, DccpListener, DccpSettings};
use crate::socket::linux::{Linux, LinuxListener, LinuxSettings};
use crate::socket::stream::SizeOf;
use crate::socket::tcp::{Tcp, TcpListener, TcpSettings};
use crate::socket::udp::{Udp, UdpListener};
use crate::socket::{FlowSocket, Listen};
use crate::spec::{AgentProtocol, AgentSpec, DccpStack, Role};

/// Time limit of a response over a byte stream. A reliable stream delivers it eventually.
const NEVER: Duration = Duration::from_secs(1 << 30);

/// Creates what one end of a flow needs.
pub(crate) struct SocketFactory {
    spec: AgentSpec,
    traffic: Traffic,
    /// The endpoint that all connections of our DCCP share.
    host: Option<Rc<DccpHost>>,
}

/// What the application requires of a socket.
#[derive(Clone, Copy)]
struct Needs {
    /// Messages are tracked one by one.
    tracks_messages: bool,
    /// The application always has more to send.
    is_bulk: bool,
    /// The sender also reads.
    reads: bool,
}

impl SocketFactory {
    pub(super) fn new(spec: &AgentSpec) -> Result<Self, AgentError> {
        let mut traffic = spec.traffic();
        if let (Traffic::RequestResponse { timeout, .. }, AgentProtocol::Tcp { .. }) =
            (&mut traffic, &spec.protocol)
        {
            *timeout = NEVER;
        }
        if let (AgentProtocol::Udp, Traffic::RequestResponse { .. }) = (&spec.protocol, &traffic) {
            return Err(AgentError::SimulationOnly { what: "a dialogue over UDP".to_owned() });
        }
        Ok(Self { spec: spec.clone(), traffic, host: None })
    }

    fn needs(&self) -> Needs {
        let (tracks_messages, is_bulk) = match self.traffic {
            Traffic::Bulk | Traffic::Transfer { .. } | Traffic::Poisson { .. } => (false, true),
            Traffic::ConstantRate { .. } | Traffic::OnOff { .. } => (false, false),
            Traffic::Voip { .. }
            | Traffic::Video { .. }
            | Traffic::VideoTrace { .. }
            | Traffic::RequestResponse { .. } => (true, false),
        };
        let reads = matches!(self.traffic, Traffic::RequestResponse { .. });
        Needs { tracks_messages, is_bulk, reads }
    }

    fn tcp(&self) -> Option<TcpSettings> {
        let AgentProtocol::Tcp { congestion, send_buffer, receive_buffer } = &self.spec.protocol
        else {
            return None;
        };
        Some(TcpSettings {
            congestion: congestion.clone(),
            send_buffer: *send_buffer,
            receive_buffer: *receive_buffer,
            packet_bytes: self.spec.packet_bytes,
            prompt: self.spec.prompt,
        })
    }

    fn linux(&self) -> Option<LinuxSettings> {
        let AgentProtocol::Dccp { stack: DccpStack::Linux { ccid, tx_queue, service } } =
            self.spec.protocol
        else {
            return None;
        };
        let Needs { tracks_messages, is_bulk, .. } = self.needs();
        let packet_bytes = self.spec.packet_bytes;
        Some(LinuxSettings { ccid, tx_queue, service, is_bulk, tracks_messages, packet_bytes })
    }

    fn ours(&self) -> Result<Option<DccpSettings>, AgentError> {
        let AgentProtocol::Dccp {
            stack: DccpStack::Ours { transport, protocol, options, offload },
        } = &self.spec.protocol
        else {
            return Ok(None);
        };
        let Needs { tracks_messages, is_bulk, .. } = self.needs();
        let packet = self.spec.packet_bytes;
        let settings = DccpSettings::of(
            protocol,
            packet,
            options,
            *transport,
            *offload,
            is_bulk,
            tracks_messages,
        )?;
        Ok(Some(DccpSettings { prompt: self.spec.prompt, ..settings }))
    }

    /// The passive socket of a receiver.
    pub(super) fn listener(&mut self) -> Result<Box<dyn Listen>, AgentError> {
        let Needs { tracks_messages, .. } = self.needs();
        let local = SocketAddr::new(self.spec.local, self.spec.port);
        if let Some(settings) = self.tcp() {
            let sizes = self.arriving(Role::Receiver);
            return Ok(Box::new(TcpListener::bind(&settings, local, tracks_messages, sizes)?));
        }
        if let Some(settings) = self.linux() {
            return Ok(Box::new(LinuxListener::bind(settings, local)?));
        }
        if let Some(settings) = self.ours()? {
            return Ok(Box::new(DccpListener::bind(settings, local.ip(), local.port())?));
        }
        Ok(Box::new(UdpListener::bind(local, self.spec.packet_bytes, tracks_messages)?))
    }

    /// An active socket.
    pub(super) fn sender(&mut self) -> Result<Box<dyn FlowSocket>, AgentError> {
        let Needs { tracks_messages, reads, .. } = self.needs();
        let (at, port) = ([self.spec.local, self.spec.remote], self.spec.port);
        if let Some(settings) = self.tcp() {
            let sizes = self.arriving(Role::Sender).map(|make| make());
            return Ok(Box::new(Tcp::sender(&settings, at, port, tracks_messages, sizes)?));
        }
        if let Some(settings) = self.linux() {
            return Ok(Box::new(Linux::sender(settings, at, port, reads)?));
        }
        if let Some(settings) = self.ours()? {
            let host = match &self.host {
                Some(host) => Rc::clone(host),
                None => Rc::new(DccpHost::bind(settings, self.spec.local, 0)?),
            };
            self.host = Some(Rc::clone(&host));
            return Ok(Box::new(Dccp::sender(host, self.spec.remote, port, reads)));
        }
        Ok(Box::new(Udp::sender(at, port, self.spec.packet_bytes, tracks_messages)?))
    }

    /// A sender's connections, none of them open yet.
    pub(super) fn senders(&mut self) -> Result<Vec<FlowDriver>, AgentError> {
        let start = Instant::from_nanos(self.spec.start_ns);
        let stop = self.spec.stop_ns.map_or(Instant::MAX, Instant::from_nanos);
        let seed = Seed(self.spec.source_seed);
        let flow = self.sender()?;
        if let Traffic::Poisson { every, size } = self.traffic {
            return self.transfers(every, size, seed);
        }
        let source = source(&self.traffic, seed.stream("source"));
        Ok(vec![FlowDriver::sender(Some(flow), source, start, stop)])
    }

    /// The transfers of a flow. Each creates its socket when it starts.
    fn transfers(
        &self,
        every: Duration,
        size: RandomVariable<DataSize>,
        seed: Seed,
    ) -> Result<Vec<FlowDriver>, AgentError> {
        let start = Duration::from_nanos(self.spec.start_ns);
        let end = Duration::from_nanos(self.spec.stop_ns.unwrap_or(self.spec.duration_ns));
        let mut rng = seed.stream("arrivals");
        let sizes = size.distribution();
        let arrivals = poisson(start, end, every, sizes, &mut rng, MAX_TRANSFERS + 1);
        if arrivals.is_empty() || arrivals.len() > MAX_TRANSFERS {
            let why = format!("{} transfers come", arrivals.len());
            return Err(AgentError::Spec { why });
        }
        let driver = |arrival: &udccp_sim::Arrival| {
            let source = Box::new(Transfer::new(arrival.bytes));
            FlowDriver::sender(None, source, Instant::ZERO + arrival.at, Instant::MAX)
        };
        Ok(arrivals.iter().map(driver).collect())
    }

    /// What a receiver does with a connection's data.
    pub(super) fn receiver(&self) -> Receiver {
        match (&self.traffic, self.dialogue()) {
            (_, Some(dialogue)) => {
                Receiver::Answers(Box::new(Responder::new(dialogue, self.rng())))
            }
            (Traffic::Voip { .. } | Traffic::Video { .. } | Traffic::VideoTrace { .. }, _) => {
                Receiver::Tracks(source(&self.traffic, self.rng()))
            }
            _ => Receiver::Counts,
        }
    }

    fn rng(&self) -> udccp_base::Rng {
        Seed(self.spec.source_seed).stream("source")
    }

    fn dialogue(&self) -> Option<Dialogue> {
        let Traffic::RequestResponse { request, response, think, timeout } = self.traffic else {
            return None;
        };
        let [request, response] = [request, response].map(RandomVariable::distribution);
        Some(Dialogue { request, response, think: think.distribution(), timeout })
    }

    /// The length of each message that arrives at this end over a byte stream, or `None` if
    /// messages are not tracked.
    fn arriving(&self, role: Role) -> Option<Box<dyn Fn() -> SizeOf>> {
        if let Some(dialogue) = self.dialogue() {
            let rng = self.rng();
            return Some(Box::new(move || {
                let mut sizes = DialogueSizes::new(dialogue, rng.clone());
                match role {
                    Role::Receiver => Box::new(move |id| sizes.of(id)[0]),
                    Role::Sender => Box::new(move |id| sizes.of(id)[1]),
                }
            }));
        }
        if role == Role::Sender {
            return None;
        }
        let frames = match &self.traffic {
            Traffic::Voip { codec, packet, .. } => {
                let codec = match codec {
                    CodecName::G711 => Codec::G711,
                    CodecName::G729 => Codec::G729,
                };
                Frames::of([Voip::packet_bytes(codec, *packet)])
            }
            Traffic::Video { rate, every, group, ratio, .. } => {
                let group = u32::try_from(*group).unwrap_or(u32::MAX);
                Frames::pattern(*rate, *every, group, *ratio)
            }
            Traffic::VideoTrace { trace, .. } => Frames::of(trace.bytes.clone()),
            _ => return None,
        };
        Some(Box::new(move || {
            let frames = frames.clone();
            Box::new(move |id| frames.size(id))
        }))
    }
}
