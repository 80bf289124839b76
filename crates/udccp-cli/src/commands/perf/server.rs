//! The server, which runs any number of tests at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use udccp::{Connection, Endpoint, Error};

use super::control::{Reply, Request, Responder, StreamResult};
use super::flow::{self, Load, Sent};
use super::messages::{Header, Kind};
use super::meter::Meter;
use super::reporter;
use super::spec::{Spec, with_queues};
use super::{CONTROL, STREAM, ServerArgs, clock};
use crate::commands::net::first_that_works;
use crate::exit::{CliResult, Exit};
use crate::interrupt::{Signal, Signals};
use crate::output;

/// Time limit for a stream to identify itself.
const ATTACH_WITHIN: Duration = Duration::from_secs(10);
/// Time limit for a result that waits for its last messages.
const RESULT_WITHIN: Duration = Duration::from_secs(15);
/// Time limit for a stream of a stopped test to end.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// Tests in progress, by number.
type Tests = Arc<Mutex<BTreeMap<u64, Arc<Test>>>>;

/// A test in progress.
#[derive(Debug)]
struct Test {
    number: u64,
    spec: Spec,
    began: watch::Sender<Option<(Instant, ProcessTime)>>,
    /// Why the test is stopped early.
    stopped: watch::Sender<Option<String>>,
    /// Whether the client has made all requests of the test.
    all_requested: AtomicBool,
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    meter: Arc<Meter>,
    /// The sender's result, once sending is over.
    sent: watch::Sender<Option<Sent>>,
    /// Whether the connection has ended and all received messages are counted.
    over: watch::Sender<bool>,
}

/// Serves tests until a signal ends the process.
pub(super) async fn run(args: &ServerArgs) -> CliResult<Exit> {
    let mut signals = Signals::new()?;
    let options = with_queues(args.net.options().backlog(2048));
    let listener = first_that_works(&args.net.listen_at(args.port), |&addr| {
        Endpoint::bind_with(addr, &args.net.endpoint_options())?.listen(
            args.port,
            [CONTROL, STREAM],
            &options,
        )
    })?;
    output::note(&format!(
        "listening on DCCP port {} over {}",
        listener.port(),
        args.net.carrier(listener.local_addr())
    ));
    let (tests, json) = (Tests::default(), args.json);
    let stop_signal = watch::Sender::new(None);
    let mut serving = JoinSet::new();
    let (tell, mut over) = tokio::sync::mpsc::channel(1);
    let signal = loop {
        let connection = tokio::select! {
            accepted = listener.accept() => accepted?,
            signal = signals.next() => break signal,
            Some(exit) = over.recv(), if args.one_off => return Ok(exit),
            Some(_) = serving.join_next() => continue,
        };
        let (tests, tell) = (Arc::clone(&tests), tell.clone());
        let stop_signal = stop_signal.subscribe();
        serving.spawn(async move {
            if connection.service_code() == CONTROL {
                let end = serve_control(&connection, &tests, json, stop_signal).await;
                // Only `--one-off` receives it.
                let _ = tell.try_send(output::exit(end));
            } else {
                serve_stream(connection, &tests).await;
            }
        });
    };
    output::note(&signal.to_string());
    stop_signal.send_replace(Some(signal));
    let all = async { while serving.join_next().await.is_some() {} };
    // Remaining connections are closed when they are dropped.
    let _ = tokio::time::timeout(2 * STOP_WITHIN, all).await;
    Ok(signal.exit())
}

/// Serves one client from its first request to its end. A failure is one of printing its results.
async fn serve_control(
    connection: &Connection,
    tests: &Tests,
    json: bool,
    mut stop_signal: watch::Receiver<Option<Signal>>,
) -> CliResult<Exit> {
    let peer = connection.peer_addr();
    output::note(&format!("client {peer}"));
    let mut test = None;
    let signal = async { stop_signal.wait_for(Option::is_some).await.ok().and_then(|s| *s) };
    let failure = tokio::select! {
        end = answer_all(connection, tests, &mut test) => end.err().map(|e| e.to_string()),
        Some(signal) = signal => Some(format!("the server was {signal}")),
    };
    if let Some(why) = &failure {
        output::note(&format!("client {peer}: {why}"));
    }
    let Some(test) = test else { return Ok(Exit::Success) };
    locked(tests).remove(&test.number);
    let left =
        || (!test.all_requested.load(Ordering::Relaxed)).then(|| "the client left".to_owned());
    if let Some(reason) = failure.or_else(left) {
        test.stop(reason).await;
    }
    let reason = test.stopped.borrow().clone();
    let results: Vec<StreamResult> = test.streams.iter().map(|s| s.result(&test.spec)).collect();
    let peer = peer.to_string();
    reporter::print_server(&peer, &test.spec, &results, reason.as_deref(), json)?;
    Ok(Exit::Success)
}

async fn answer_all(
    connection: &Connection,
    tests: &Tests,
    current: &mut Option<Arc<Test>>,
) -> CliResult<()> {
    let mut responder = Responder::new(connection);
    while let Some(request) = responder.next().await? {
        let reply = match (request, &current) {
            (Request::Start(spec), None) => {
                match spec.refusal_reason(connection.max_message_size()) {
                    Some(why) => Reply::Refused(why),
                    None => {
                        let test = Arc::new(Test::new(spec));
                        locked(tests).insert(test.number, Arc::clone(&test));
                        Reply::Ready(current.insert(test).number)
                    }
                }
            }
            (Request::Go, Some(test)) => {
                let peer = connection.peer_addr();
                output::note(&format!("client {peer}: {}", test.spec.describe(test.spec.who())));
                test.began.send_replace(Some((clock(), ProcessTime::now())));
                Reply::Going
            }
            (Request::Stream(n), Some(test)) => match test.streams.get(usize::from(n)) {
                Some(stream) => Reply::Stream(stream.final_result(&test.spec).await),
                None => Reply::Refused(format!("there is no stream {n}")),
            },
            // The last request of a test.
            (Request::Cpu, Some(test)) => {
                test.all_requested.store(true, Ordering::Relaxed);
                Reply::Cpu(test.cpu_percent())
            }
            (Request::Stopped(why), Some(test)) => {
                test.stop(format!("the client stopped it: {why}")).await;
                Reply::Stopped
            }
            _ => Reply::Refused("this is not the next step of a test".into()),
        };
        responder.reply(reply).await?;
    }
    Ok(())
}

/// Serves one stream: finds its test, then runs both directions.
async fn serve_stream(connection: Connection, tests: &Tests) {
    let attached = tokio::time::timeout(ATTACH_WITHIN, attach(&connection, tests)).await;
    let Ok(Ok(Some((test, n)))) = attached else {
        connection.abort();
        return;
    };
    let stream = &test.streams[usize::from(n)];
    let sending = async {
        if test.spec.direction.server_sends() {
            let before = Sent::of(&connection, 0.0);
            let mut began = test.began.subscribe();
            if began.wait_for(Option::is_some).await.is_ok() {
                // Whatever ended the sending, what was sent counts.
                let (seconds, ended) = flow::send(&connection, test.load(n)).await;
                flow::account(&connection).await;
                let sent = Sent::of(&connection, seconds).since(&before, seconds);
                stream.sent.send_replace(Some(sent));
                if let Err(e @ Error::MessageTooLarge { .. }) = ended {
                    // The path has become narrower. The client would wait for messages.
                    output::note(&format!("client {}: {e}", connection.peer_addr()));
                    let _ = connection.close().await;
                }
            }
        }
    };
    // How the connection ends is up to the client.
    let receiving = flow::receive(&connection, &stream.meter);
    let both = async { tokio::join!(sending, receiving) };
    tokio::pin!(both);
    let mut stopped = test.stopped.subscribe();
    let stopped = async { drop(stopped.wait_for(Option::is_some).await) };
    tokio::select! {
        _ = &mut both => {}
        () = stopped => {
            connection.abort();
            let _ = both.await;
        }
    }
    stream.over.send_replace(true);
}

/// Waits for the message that identifies the stream, and confirms it.
async fn attach(connection: &Connection, tests: &Tests) -> Result<Option<(Arc<Test>, u16)>, Error> {
    while let Some(message) = connection.recv().await? {
        let Some(header) = Header::read(&message).filter(|h| h.kind == Kind::Attach) else {
            continue;
        };
        let test = locked(tests).get(&header.test).cloned();
        let Some(test) = test.filter(|t| usize::from(header.stream) < t.streams.len()) else {
            return Ok(None);
        };
        connection.send(Header { kind: Kind::Attached, ..header }.message()).await?;
        return Ok(Some((test, header.stream)));
    }
    Ok(None)
}

fn locked(tests: &Tests) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Test>>> {
    tests.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Test {
    fn new(spec: Spec) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let epoch = clock();
        let stream = || Stream {
            meter: Arc::new(Meter::new(epoch)),
            sent: watch::Sender::new(None),
            over: watch::Sender::new(false),
        };
        let streams = (0..spec.streams).map(|_| stream()).collect();
        // Unique in this process; it need not be secret.
        let number = u64::from(std::process::id()) << 32 ^ NEXT.fetch_add(1, Ordering::Relaxed);
        let (began, stopped) = (watch::Sender::new(None), watch::Sender::new(None));
        Self { number, spec, began, stopped, all_requested: AtomicBool::new(false), streams }
    }

    /// Stops the streams early, and waits until they have ended. The first reason is kept.
    async fn stop(&self, reason: String) {
        self.stopped.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(reason);
            is_first
        });
        let all = async {
            for stream in &self.streams {
                let _ = stream.over.subscribe().wait_for(|over| *over).await;
            }
        };
        let _ = tokio::time::timeout(STOP_WITHIN, all).await;
    }

    fn load(&self, stream: u16) -> Load {
        Load {
            test: self.number,
            stream,
            length: self.spec.length,
            bits_per_s: self.spec.bits_per_s,
            duration: self.spec.duration(),
        }
    }

    fn cpu_percent(&self) -> f64 {
        self.began.borrow().as_ref().map_or(0.0, |(began, cpu)| {
            let wall = began.elapsed().as_secs_f64();
            if wall > 0.0 { cpu.elapsed().as_secs_f64() / wall * 100.0 } else { 0.0 }
        })
    }
}

impl Stream {
    /// The current result.
    fn result(&self, spec: &Spec) -> StreamResult {
        StreamResult {
            sent: *self.sent.borrow(),
            received: spec.direction.client_sends().then(|| self.meter.total()),
        }
    }

    /// The result when sending is over.
    async fn final_result(&self, spec: &Spec) -> StreamResult {
        if spec.direction.server_sends() {
            let mut sent = self.sent.subscribe();
            let _ = tokio::time::timeout(RESULT_WITHIN, sent.wait_for(Option::is_some)).await;
        }
        self.result(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Direction, PROTOCOL};
    use super::*;

    /// Regression: two concurrent tests occasionally had the same number, and the streams of one
    /// were assigned to the other.
    #[test]
    fn each_test_has_a_number_of_its_own() {
        let spec = Spec {
            protocol: PROTOCOL,
            direction: Direction::Forward,
            streams: 1,
            duration_s: 1.0,
            length: 1000,
            bits_per_s: None,
            ccid: 2,
        };
        let mut numbers: Vec<u64> = (0..1000).map(|_| Test::new(spec.clone()).number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 1000);
    }
}
