//! Connections that end in the phases of their handshake, from either side or both, while the path
//! loses, copies and delays packets.

use udccp_base::{Duration, Rng, Seed};
use udccp_proto::{InitCookies, ListenConfig, ListenerId, State};

use super::common::path::Path;
use super::common::world::World;
use super::common::{CLIENT, SERVER, service};
use super::story::{Story, pick};
use super::tell::{assert_nothing_is_left, hosts, set_up};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// Half a delay of the path after another: the handshake without losses, and some time after it.
const STEPS: u64 = 20;
/// Time for all retries, and what is left of it when the last of them have ended.
const RETRIES: Duration = Duration::from_secs(1000);

#[derive(Clone, Copy, Debug)]
enum Act {
    Closes,
    Aborts,
    Releases,
}

#[derive(Clone, Debug)]
struct Opening {
    paths: [Path; 2],
    cookies: bool,
    /// Messages that each end sends at once.
    messages: [u64; 2],
    /// What each application does to end the connection. The client does it so many steps after its
    /// Request, the server after it has accepted.
    acts: [Option<(Act, u64)>; 2],
}

impl Opening {
    fn new(rng: &mut Rng, path: &Path) -> Self {
        let acts = [Act::Closes, Act::Aborts, Act::Releases];
        let steps = [rng.below(10), pick(rng, &[0, 0, 1, 3])];
        let mut acts = steps.map(|step| Some((pick(rng, &acts), step)));
        if rng.chance(0.6) {
            acts[rng.below(2) as usize] = None;
        }
        Self {
            paths: [0, 1].map(|_| Path {
                loss: pick(rng, &[0.0, 0.1, 0.4]),
                duplicate: pick(rng, &[0.0, 0.3, 1.0]),
                reorder: pick(rng, &[0.0, 0.0, 0.5]),
                detour: pick(rng, &[MS * 10, MS * 300, SECOND * 5]),
                ..path.clone()
            }),
            cookies: rng.chance(0.3),
            messages: [pick(rng, &[0, 1, 5]), pick(rng, &[0, 1, 5])],
            acts,
        }
    }
}

struct Opener {
    world: World,
    listener: ListenerId,
    opening: Opening,
    /// Steps since the Request, and since the server accepted.
    steps: [u64; 2],
}

impl Opener {
    fn new(story: &Story) -> Self {
        let opening = Opening::new(&mut Seed(story.seed).stream("opening"), &story.path);
        let (hosts, options, server) = hosts(story);
        let listen = ListenConfig {
            connection: server.into(),
            init_cookies: if opening.cookies { InitCookies::Always } else { InitCookies::Never },
            ..ListenConfig::new(service())
        };
        let rng = Seed(story.seed).stream("network");
        let (seed, delay) = (story.seed, story.delay);
        let (mut world, listener) = World::starting(seed, rng, hosts, (options, listen), delay);
        set_up(&mut world, story);
        world.paths = opening.paths.clone();
        (0..opening.messages[CLIENT]).for_each(|_| world.send(CLIENT));
        Self { world, listener, opening, steps: [0; 2] }
    }

    /// The server accepts. Copies of a Request may have opened further connections: it releases
    /// those.
    fn accept(&mut self) {
        while let Some(id) = self.world.hosts[SERVER].end.accept(self.listener) {
            if self.world.hosts[SERVER].id.is_none() {
                self.world.hosts[SERVER].id = Some(id);
                (0..self.opening.messages[SERVER]).for_each(|_| self.world.send(SERVER));
            } else {
                let at = self.world.shows(SERVER);
                self.world.hosts[SERVER].end.release(at, id);
            }
        }
    }

    fn step(&mut self, span: Duration) {
        self.accept();
        for host in [CLIENT, SERVER] {
            if self.world.hosts[host].id.is_none() {
                continue;
            }
            let due = self.opening.acts[host].filter(|(_, step)| *step == self.steps[host]);
            self.steps[host] += 1;
            if let Some((act, _)) = due {
                self.world.call(host, |end, at, id| match act {
                    Act::Closes => end.close(at, id),
                    Act::Aborts => end.abort(at, id),
                    Act::Releases => end.release(at, id),
                });
            }
            self.world.read(host);
        }
        self.world.pass(span);
    }

    fn is_over(&self, host: usize) -> bool {
        self.world.state(host).is_none_or(State::is_over)
    }

    /// Whether the application of a host has ended its connection.
    fn has_acted(&self, host: usize) -> bool {
        self.opening.acts[host].is_some_and(|(_, step)| step < self.steps[host])
    }

    fn assert_over(&self, host: usize) {
        let state = self.world.state(host);
        assert!(self.is_over(host), "host {host} is {state:?}: {:?}", self.opening);
    }
}

/// What ends is over in time. Its peer is over once a message shows that.
pub(crate) fn run(seed: u64) {
    let story = Story::new(seed, &mut Seed(seed).stream("story"));
    let mut o = Opener::new(&story);
    (0..STEPS).for_each(|_| o.step(story.delay / 2));
    (0..STEPS).for_each(|_| o.step(RETRIES / STEPS));
    let acted = [CLIENT, SERVER].map(|host| o.has_acted(host));
    (0..2).filter(|&host| acted[host]).for_each(|host| o.assert_over(host));
    o.world.paths = [0, 1].map(|_| story.path.clone());
    for host in [CLIENT, SERVER] {
        if o.world.hosts[host].id.is_some() {
            o.world.send(host);
            if acted == [false; 2] {
                o.world.call(host, |end, at, id| end.close(at, id));
            }
        }
    }
    o.world.pass(story.config.silence_timeout + RETRIES);
    o.accept();
    for host in [CLIENT, SERVER] {
        o.assert_over(host);
        if o.world.hosts[host].id.is_some() {
            o.world.read(host);
            o.world.call(host, |end, at, id| end.release(at, id));
        }
    }
    assert_nothing_is_left(&mut o.world);
}
