//! Requests a rate by Quick-Start (RFC 5634 section 2). A client asks the routers with its Request,
//! and uses the rate that they and the server allow, until acknowledgements show whether the path
//! can carry it.

use udccp_base::{DataRate, Datagram, Duration, Instant, QuickStart, QuickStartFunction};
use udccp_wire::{OptionRef, PacketType, Seqno};

use super::Connection;
use super::timers::Timer;
use crate::ccid::{AckOutcome, OptionSink, QUICK_START_HEADER_BYTES, QuickStartStep, ccid2, ccid4};
use crate::config::QuickStartConfig;

/// Most that a CCID 4 sender may request (RFC 5634 section 3.3.1).
const CCID4_PACKETS_PER_SEC: u64 = 100;

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No request was made, or it is over.
    Idle,
    /// The first Request will ask for a rate.
    Wanted,
    /// Waiting for the Response.
    Requested,
    /// This rate number was approved.
    Approved(u8),
    /// Sending at the approved rate, with the first and last data packets sent so.
    Mode { first: Option<Seqno>, last: Option<Seqno> },
    /// Waiting for reports of all packets up to this one.
    Validation { last: Option<Seqno> },
}

/// Quick-Start of one connection, at either end.
#[derive(Clone, Debug)]
pub(crate) struct QuickStartState {
    config: QuickStartConfig,
    phase: Phase,
    nonce: u32,
    ttl: u8,
    /// The requested rate number.
    rate: u8,
    /// The option of the packet that is being sent.
    leaving: Option<QuickStart>,
    /// The response that we owe: rate, TTL Diff, nonce.
    owed: Option<(u8, u8, u32)>,
    /// Whether anything was acknowledged since the mode began.
    heard: bool,
}

impl QuickStartState {
    /// The state, if the settings use Quick-Start at all.
    pub(crate) fn of(config: &QuickStartConfig) -> Option<Box<Self>> {
        let wanted = config.request.is_some() || config.accept.is_some();
        wanted.then(|| {
            Box::new(Self {
                config: *config,
                phase: if config.request.is_some() { Phase::Wanted } else { Phase::Idle },
                nonce: 0,
                ttl: 0,
                rate: 0,
                leaving: None,
                owed: None,
                heard: false,
            })
        })
    }

    //= 5634-2.3.1-1
    /// A packet was sent.
    pub(crate) fn on_sent(&mut self, seq: Seqno, is_data: bool) {
        if let (true, Phase::Mode { first, last }) = (is_data, &mut self.phase) {
            first.get_or_insert(seq);
            *last = Some(seq);
        }
    }

    fn option(&self, function: QuickStartFunction, rate: u8) -> QuickStart {
        QuickStart { function, rate, ttl: self.ttl, nonce: self.nonce }
    }
}

impl Connection {
    /// Whether a client is about to request Quick-Start.
    pub(crate) fn wants_quick_start(&self) -> bool {
        self.quick_start.as_ref().is_some_and(|qs| qs.phase == Phase::Wanted)
    }

    /// Sets the nonce and the QS TTL of the request.
    pub(crate) fn set_quick_start_numbers(&mut self, (nonce, ttl): (u32, u8)) {
        if let Some(qs) = &mut self.quick_start {
            (qs.nonce, qs.ttl) = (nonce, ttl);
        }
    }

    /// Takes the option of the packet that was sent last.
    pub(crate) fn take_quick_start_option(&mut self) -> Option<QuickStart> {
        self.quick_start.as_mut()?.leaving.take()
    }

    //= 5634-2.1-1
    //= 5634-2.1-3
    //= 5634-2.7-1
    //= 5634-2.8-1
    //= 5634-3.1.1-1
    //= 5634-3.2.1-1
    //= 5634-3.3.1-1
    /// Puts the request on the first Request only. The option may be the reason why that one got no
    /// answer, so retransmissions go without.
    pub(super) fn ask_for_quick_start(&mut self) {
        let bytes = self.path.max_message_size() as u64 + QUICK_START_HEADER_BYTES;
        let is_ccid4 = self.config.tx_ccids.first() == Some(&ccid4::NUMBER);
        let Some(qs) = &mut self.quick_start else { return };
        let asks = qs.phase == Phase::Wanted && self.handshake.is_first_request();
        let Some(wanted) = qs.config.request.filter(|_| asks) else { return };
        qs.rate = QuickStart::number_above(wanted);
        if is_ccid4 {
            let most = DataRate::from_bytes_per_sec(CCID4_PACKETS_PER_SEC * bytes);
            qs.rate = qs.rate.min(QuickStart::number_below(most));
        }
        qs.phase = Phase::Requested;
        qs.leaving = Some(qs.option(QuickStartFunction::Request, qs.rate));
    }

    //= 5634-2.2-1
    //= 5634-2.2-2
    //= 5634-2.2-4
    //= 5634-3.1.2-1
    /// A valid packet arrived with this option and time to live. A request is answered once,
    /// without delay.
    pub(super) fn owe_quick_start_response(&mut self, (option, ttl): (QuickStart, u8)) {
        let Some(qs) = &mut self.quick_start else { return };
        let is_request = option.function == QuickStartFunction::Request && option.rate > 0;
        let Some(limit) = qs.config.accept.filter(|_| is_request) else { return };
        let rate = option.rate.min(QuickStart::number_below(limit));
        qs.owed = Some((rate, ttl.wrapping_sub(option.ttl), option.nonce));
        self.outbox.ack = true;
    }

    //= 5634-2.2-3
    /// Writes the response that we owe. It is not kept: if it is lost, it is not sent again.
    pub(super) fn write_quick_start_response(
        &mut self,
        ty: PacketType,
        sink: &mut impl OptionSink,
    ) {
        let may_carry = matches!(ty, PacketType::Response | PacketType::Ack | PacketType::DataAck);
        let qs = self.quick_start.as_mut().filter(|_| may_carry);
        if let Some((rate, ttl_diff, nonce)) = qs.and_then(|qs| qs.owed.take()) {
            sink.option(&OptionRef::QuickStartResponse { rate, ttl_diff, nonce });
        }
    }

    //= 5634-2.4-1
    /// The peer answered. The rate is accepted if every router took part and the nonce matches.
    pub(super) fn take_quick_start_response(&mut self, rate: u8, ttl_diff: u8, nonce: u32) {
        let Some(qs) = &mut self.quick_start else { return };
        if qs.phase != Phase::Requested {
            return;
        }
        let all_took_part = ttl_diff == Datagram::TTL.wrapping_sub(qs.ttl);
        let is_vouched_for =
            QuickStart::nonce_for_rate(nonce, rate) == QuickStart::nonce_for_rate(qs.nonce, rate);
        let approved = all_took_part && is_vouched_for && rate > 0 && rate <= qs.rate;
        qs.phase = if approved { Phase::Approved(rate) } else { Phase::Idle };
    }

    //= 5634-2.3-1
    //= 5634-3.1.3-1
    //= 5634-3.2.3-1
    /// The handshake is done: an approved rate is reported to the routers, and used.
    pub(super) fn begin_quick_start(&mut self, now: Instant) {
        let Some(qs) = &mut self.quick_start else { return };
        let Phase::Approved(rate) = qs.phase else {
            qs.phase = Phase::Idle;
            return;
        };
        qs.leaving = Some(qs.option(QuickStartFunction::Report, rate));
        qs.phase = Phase::Idle;
        let step = QuickStartStep::Approved(QuickStart::rate_of(rate));
        let Some(rtt) = self.timing.handshake_rtt.get() else { return };
        if self.cc.quick_start(&self.config, now, step) {
            self.counters.rare().quick_starts += 1;
            qs.phase = Phase::Mode { first: None, last: None };
            qs.heard = false;
            self.timers.set(Timer::QuickStart, now + rtt);
        }
    }

    //= 5634-2.3.2-1
    //= 5634-3.1.4-1
    //= 5634-3.1.5-1
    //= 5634-3.2.4-1
    //= 5634-3.2.4-2
    //= 5634-3.2.5-1
    /// An acknowledgement arrived on a connection that has Quick-Start.
    pub(super) fn quick_start_ack(&mut self, now: Instant, ackno: Seqno, outcome: &AckOutcome) {
        let Some(qs) = &mut self.quick_start else { return };
        let congested = outcome.newly_lost + outcome.newly_marked > 0;
        match qs.phase {
            Phase::Mode { .. } | Phase::Validation { .. } if congested => {
                self.end_quick_start(now, QuickStartStep::Congested);
            }
            Phase::Mode { first: Some(first), last } if ackno.at_least(first) => {
                qs.heard = true;
                self.begin_validation(now, last);
                self.quick_start_ack(now, ackno, outcome);
            }
            Phase::Validation { last } => {
                qs.heard |= outcome.newly_acked > 0;
                if last.is_none_or(|last| ackno.at_least(last)) && qs.heard {
                    self.end_quick_start(now, QuickStartStep::Validated);
                }
            }
            _ => {}
        }
    }

    fn begin_validation(&mut self, now: Instant, last: Option<Seqno>) {
        let rtt = self.rtt();
        let is_ccid2 = self.cc.sender_ccid() == Some(ccid2::NUMBER);
        let time = if is_ccid2 { rtt } else { rtt * 2 };
        if let Some(qs) = &mut self.quick_start {
            qs.phase = Phase::Validation { last };
        }
        self.timers.set(Timer::QuickStart, now + time.max(Duration::from_millis(1)));
    }

    /// The time of the mode, or of its validation, is over.
    pub(super) fn on_quick_start_timer(&mut self, now: Instant) {
        let Some(qs) = &self.quick_start else { return };
        let heard = qs.heard;
        match qs.phase {
            Phase::Mode { last, .. } => self.begin_validation(now, last),
            //= 5634-3.2.4-4
            Phase::Validation { last } => {
                let idle = last.is_none();
                let silent = !heard && !idle;
                let step = if silent { QuickStartStep::Silent } else { QuickStartStep::Validated };
                self.end_quick_start(now, step);
            }
            _ => {}
        }
    }

    fn end_quick_start(&mut self, now: Instant, step: QuickStartStep) {
        self.timers.stop(Timer::QuickStart);
        if let Some(qs) = &mut self.quick_start {
            qs.phase = Phase::Idle;
        }
        self.cc.quick_start(&self.config, now, step);
    }
}
