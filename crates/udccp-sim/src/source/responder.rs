//! The answering side of a dialogue, for a server that shares no memory with its client.

use std::collections::VecDeque;

use udccp_base::{AppPort, Instant, Payload, Rng};

use super::pieces::{Assembly, MARK, Partly};
use super::request_response::{Dialogue, whole_bytes};

/// The sizes of the requests and responses of a [`RequestResponse`](super::RequestResponse). The
/// same generator draws the same numbers at both ends.
#[derive(Clone, Debug)]
pub struct DialogueSizes {
    dialogue: Dialogue,
    rng: Rng,
    drawn: Vec<[u32; 2]>,
}

impl DialogueSizes {
    /// `rng` must have the state of the client's generator at its start.
    pub const fn new(dialogue: Dialogue, rng: Rng) -> Self {
        Self { dialogue, rng, drawn: Vec::new() }
    }

    /// Bytes on the wire of a request, counted from 0, and of its response.
    pub fn of(&mut self, id: u32) -> [u32; 2] {
        while self.drawn.len() <= id as usize {
            let Dialogue { request, response, think, .. } = self.dialogue;
            let sizes = [request, response].map(|of| whole_bytes(of.sample(&mut self.rng)));
            // Draws the think time that follows each request, whether answered or given up.
            think.sample(&mut self.rng);
            self.drawn.push(sizes.map(|bytes| bytes.max(MARK as u32)));
        }
        self.drawn[id as usize]
    }
}

/// Answers the requests of a [`RequestResponse`](super::RequestResponse) in another process.
/// Messages carry their marks, over byte streams too.
#[derive(Clone, Debug)]
pub struct Responder {
    sizes: DialogueSizes,
    asked: Assembly,
    answers: VecDeque<Partly>,
}

impl Responder {
    /// `rng` must have the state of the client's generator at its start.
    pub fn new(dialogue: Dialogue, rng: Rng) -> Self {
        let sizes = DialogueSizes::new(dialogue, rng);
        Self { sizes, asked: Assembly::default(), answers: VecDeque::new() }
    }

    /// Data arrived at the server.
    pub fn take(&mut self, now: Instant, payload: &Payload) {
        let mut whole = None;
        self.asked.take(payload, |id, _| whole = Some(id));
        if let Some(id) = whole {
            let [_, response] = self.sizes.of(id);
            // A client sends a new request only after it has stopped waiting for earlier ones.
            self.answers.clear();
            self.answers.push_back(Partly::new(id, now, response, None));
        }
    }

    /// Offers the transport the answers that are due. Returns whether any was accepted.
    pub fn answer(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        let Some(answer) = self.answers.front_mut() else { return false };
        let before = answer.taken;
        let is_done = answer.offer(now, port);
        let taken = answer.taken > before;
        if is_done {
            self.answers.pop_front();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{Duration, Seed};

    use super::super::Distribution;
    use super::*;

    #[test]
    fn a_server_draws_what_its_client_draws() {
        let dialogue = Dialogue {
            request: Distribution::Exponential { mean: 300.0 },
            response: Distribution::Pareto { mean: 9_000.0, shape: 1.5 },
            think: Distribution::Exponential { mean: 0.5 },
            timeout: Duration::from_secs(5),
        };
        let rng = || Seed(7).stream("source");
        let mut client = rng();
        let mut sizes = DialogueSizes::new(dialogue, rng());
        for id in 0..20 {
            let request = whole_bytes(dialogue.request.sample(&mut client)).max(MARK as u32);
            let response = whole_bytes(dialogue.response.sample(&mut client)).max(MARK as u32);
            dialogue.think.sample(&mut client);
            assert_eq!(sizes.of(id), [request, response]);
        }
    }
}
