//! A client that sends requests, and a server that answers them.

use std::collections::VecDeque;

use udccp_base::{AppPort, Duration, Instant, Payload, Rng};

use super::distribution::Distribution;
use super::pieces::{Assembly, Partly, since};
use super::{End, Outcome, Source, SourceStats, Times};

/// The settings of a [`RequestResponse`]. Sizes are in bytes, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dialogue {
    /// Size of a request.
    pub request: Distribution,
    /// Size of its response.
    pub response: Distribution,
    /// Time between the end of a response and the next request.
    pub think: Distribution,
    /// Over a transport that loses data: how long to wait for a response before giving it up.
    pub timeout: Duration,
}

/// Requests from the sender, which the receiver answers at once. The next request follows the
/// response after a think time. The goodput of such a flow is that of its requests.
///
/// A byte stream eventually delivers every request and response. Over other transports, a request
/// or response that lost a packet is not repeated, but given up after a timeout.
#[derive(Clone, Debug)]
pub struct RequestResponse {
    dialogue: Dialogue,
    rng: Rng,
    next_id: u32,
    state: State,
    /// The request on its way: its number, and the size of its response.
    asked: Option<(u32, u32)>,
    answers: VecDeque<Partly>,
    at_server: Assembly,
    at_client: Assembly,
    times: Times,
    stats: SourceStats,
}

#[derive(Clone, Debug)]
enum State {
    Waiting,
    Thinking(Instant),
    Asking(Partly),
    /// Since when, and the deadline if there is one.
    Expecting(Instant, Option<Instant>),
}

impl RequestResponse {
    /// The first request is created when the flow starts. `rng` should be a stream that nothing
    /// else draws from.
    pub fn new(dialogue: Dialogue, rng: Rng) -> Self {
        Self {
            dialogue,
            rng,
            next_id: 0,
            state: State::Waiting,
            asked: None,
            answers: VecDeque::new(),
            at_server: Assembly::default(),
            at_client: Assembly::default(),
            times: Times::default(),
            stats: SourceStats::default(),
        }
    }

    fn draw(&mut self, of: Distribution) -> u32 {
        whole_bytes(of.sample(&mut self.rng))
    }

    fn think(&mut self, now: Instant) {
        let time = self.dialogue.think.sample(&mut self.rng);
        self.state = State::Thinking(now + Duration::from_secs_f64(time));
    }

    fn ask(&mut self, now: Instant, may_lose: bool) {
        let [request, response] = [self.dialogue.request, self.dialogue.response];
        let (request, response) = (self.draw(request), self.draw(response));
        let deadline = may_lose.then(|| now + self.dialogue.timeout);
        let request = Partly::new(self.next_id, now, request, deadline);
        self.asked = Some((self.next_id, response));
        self.next_id = self.next_id.wrapping_add(1);
        self.times.begun += 1;
        self.state = State::Asking(request);
    }

    fn give_up(&mut self, now: Instant) {
        self.times.given_up += 1;
        self.asked = None;
        self.think(now);
    }
}

/// Rounds a drawn size to whole bytes.
pub(super) fn whole_bytes(drawn: f64) -> u32 {
    (drawn + 0.5) as u32
}

impl Source for RequestResponse {
    fn start(&mut self, now: Instant) {
        self.state = State::Thinking(now);
    }

    fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        match &self.state {
            State::Thinking(until) if *until <= now => {
                self.ask(now, port.keeps_boundaries());
            }
            State::Expecting(_, Some(end)) if *end <= now => self.give_up(now),
            State::Asking(request) if request.deadline.is_some_and(|end| end <= now) => {
                self.give_up(now);
            }
            _ => {}
        }
        let State::Asking(request) = &mut self.state else { return false };
        let before = request.taken;
        let is_done = request.offer(now, port);
        let taken = request.taken - before;
        self.stats.accepted_bytes += u64::from(taken);
        if is_done {
            self.stats.accepted += 1;
            if !port.keeps_boundaries() {
                self.at_server.expect(request);
            }
            self.state = State::Expecting(request.made, request.deadline);
        }
        taken > 0
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Waiting => None,
            State::Thinking(until) => Some(*until),
            State::Asking(request) => request.deadline,
            State::Expecting(_, end) => *end,
        }
    }

    fn stats(&self) -> SourceStats {
        self.stats
    }

    fn tracks_delivery(&self) -> bool {
        true
    }

    fn delivered(&mut self, now: Instant, end: End, payload: &Payload) {
        let mut whole = None;
        match end {
            End::Receiver => self.at_server.take(payload, |id, _| whole = Some(id)),
            End::Sender => self.at_client.take(payload, |id, _| whole = Some(id)),
        }
        // All requests but the last were given up before.
        let Some((id, response)) = self.asked.filter(|(id, _)| whole == Some(*id)) else { return };
        match (end, &self.state) {
            (End::Receiver, State::Expecting(_, end)) => {
                self.answers.clear();
                self.answers.push_back(Partly::new(id, now, response, *end));
            }
            (End::Sender, State::Expecting(made, _)) => {
                self.times.done.push(since(now, *made));
                self.asked = None;
                self.think(now);
            }
            _ => {}
        }
    }

    fn answer(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        let Some(answer) = self.answers.front_mut() else { return false };
        let before = answer.taken;
        let is_done = answer.offer(now, port);
        let taken = answer.taken > before;
        if is_done {
            if !port.keeps_boundaries() {
                self.at_client.expect(answer);
            }
            self.answers.clear();
        }
        taken
    }

    fn outcome(&self) -> Outcome {
        Outcome::Responses(self.times.clone())
    }
}
