//! The client: agrees on a test, runs its side, and reports both sides.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use udccp::{Address, Connection, Endpoint, Error, Options, ServiceCode};

use super::control::{Reply, Request, Requester, StreamResult};
use super::grid::Grid;
use super::messages::{HEADER_BYTES, Header, Kind};
use super::report::{End, Ending, Interval, Start, StreamEnd};
use super::reporter::Reporter;
use super::spec::{Direction, PROTOCOL, Spec, with_queues};
use super::stream::{Stream, failed};
use super::{CONTROL, ClientArgs, STREAM, clock};
use crate::exit::{CliResult, Exit, Failure};
use crate::interrupt::{Signal, Signals};
use crate::output;

/// Bytes of a message where they fit.
const DEFAULT_LENGTH: usize = 1400;
/// Interval for repeating the message that attaches a stream.
const ATTACH_AGAIN: Duration = Duration::from_millis(200);
/// Time limit for closing a connection at the end.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);
/// Time limit for the server's results after a stopped test. They are ready by then.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// Time limit for closing the control connection of a stopped test.
const CLOSE_STOPPED_WITHIN: Duration = Duration::from_millis(500);

/// Why a test ended early.
enum Stop {
    Signal(Signal),
    Failure(Failure),
}

/// A test that the server has accepted.
struct Test<'a> {
    args: &'a ClientArgs,
    spec: Spec,
    options: Options,
    peer: Address,
    number: u64,
    requester: Requester<'a>,
    reporter: Reporter,
    streams: Vec<Stream>,
    /// When the streams started to send.
    began: Option<(Instant, ProcessTime)>,
    /// Where the last row ended.
    seen: Instant,
    client_cpu_percent: Option<f64>,
    server_cpu_percent: Option<f64>,
}

/// Runs one test.
pub(super) async fn run(args: &ClientArgs) -> CliResult<Exit> {
    let mut signals = Signals::new()?;
    let mut spec = spec_of(args)?;
    let options = with_queues(args.net.options());
    let all = args.net.resolve(&args.host, args.port)?;
    let agreed = async {
        let (control, peer) = connect_first(&all, args, &options).await?;
        spec.length = fitting(args, &control)?;
        let mut requester = Requester::new(&control);
        match requester.request(Request::Start(spec.clone())).await? {
            Reply::Ready(test) => Ok::<_, Failure>((control, peer, test)),
            other => Err(refused(&other)),
        }
    };
    let (control, peer, number) = tokio::select! {
        agreed = agreed => agreed?,
        signal = signals.next() => {
            output::note(&format!("{signal} before the test began"));
            return Ok(signal.exit());
        }
    };
    let start = Start::new(&spec, &control);
    let mut test = Test {
        reporter: Reporter::new(args.json, args.json_stream, start)?,
        requester: Requester::after(&control, 1),
        streams: Vec::new(),
        began: None,
        seen: clock(),
        client_cpu_percent: None,
        server_cpu_percent: None,
        args,
        spec,
        options,
        peer,
        number,
    };
    let stop = tokio::select! {
        done = test.conduct() => done.err().map(Stop::Failure),
        signal = signals.next() => Some(Stop::Signal(signal)),
    };
    test.end(stop, &control, &mut signals).await
}

impl Test<'_> {
    /// Runs the test from its first stream to the server's last result.
    async fn conduct(&mut self) -> CliResult<()> {
        for n in 0..self.spec.streams {
            let connection = connect(&self.peer, self.args, STREAM, &self.options).await?;
            attach(&connection, self.number, n).await?;
            self.streams.push(Stream::new(n, connection, self.spec.direction));
        }
        match self.requester.request(Request::Go).await? {
            Reply::Going => {}
            other => return Err(refused(&other)),
        }
        let began = clock();
        (self.began, self.seen) = (Some((began, ProcessTime::now())), began);
        for stream in &mut self.streams {
            stream.start(&self.spec, self.number);
        }
        self.measure(began).await?;
        self.note_cpu();
        for stream in &mut self.streams {
            stream.finish().await?;
            stream.server = Some(request_stream(&mut self.requester, stream.n).await?);
        }
        if let Reply::Cpu(percent) = self.requester.request(Request::Cpu).await? {
            self.server_cpu_percent = Some(percent);
        }
        for stream in &mut self.streams {
            let _ = tokio::time::timeout(CLOSE_WITHIN, stream.connection.close()).await;
            stream.received().await;
        }
        // Report what was sent or received after the time was over.
        self.row(true)
    }

    /// Prints a row after every interval until the time is over.
    async fn measure(&mut self, began: Instant) -> CliResult<()> {
        let grid = Grid::new(began, self.args.interval, self.spec.duration());
        while !grid.is_over(clock()) {
            let due = grid.next(self.seen);
            let streams = &mut self.streams;
            let wait = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wait => {}
                failure = Stream::any_failure(streams) => return Err(failure),
            }
            if grid.is_over(clock()) {
                // Messages just passed to the connection belong to this row.
                let soon = (self.args.interval / 20).max(Duration::from_millis(20));
                let left = async {
                    for s in &mut self.streams {
                        s.left().await
                    }
                };
                let _ = tokio::time::timeout(soon, left).await;
            }
            self.row(false)?;
        }
        Ok(())
    }

    /// Prints what happened since the last row; with `if_any`, only if anything did.
    fn row(&mut self, if_any: bool) -> CliResult<()> {
        let Some((began, _)) = self.began.filter(|_| !self.args.interval.is_zero()) else {
            return Ok(());
        };
        let now = clock();
        let seconds = (now - self.seen).as_secs_f64();
        let looks = self.streams.iter_mut().map(|s| s.take_interval(seconds)).collect();
        let span = [self.seen, now].map(|at| (at - began).as_secs_f64());
        self.seen = now;
        let interval = Interval::new(span, looks);
        if if_any && !interval.has_bytes() {
            return Ok(());
        }
        self.reporter.interval(interval)
    }

    fn note_cpu(&mut self) {
        self.client_cpu_percent = self.began.as_ref().map(|(began, cpu)| {
            cpu.elapsed().as_secs_f64() / began.elapsed().as_secs_f64() * 100.0
        });
    }

    /// Prints the results, however the test ended, and closes the connections to the server.
    async fn end(
        mut self,
        stop: Option<Stop>,
        control: &Connection,
        signals: &mut Signals,
    ) -> CliResult<Exit> {
        let (reason, exit) = match &stop {
            None => (None, Exit::Success),
            Some(Stop::Signal(signal)) => (Some(signal.to_string()), signal.exit()),
            Some(Stop::Failure(failure)) => (Some(failure.to_string()), failure.exit),
        };
        let mut printed = Ok(());
        if let Some(reason) = &reason {
            // Send the Resets now, after all data: the server's results are then complete.
            self.streams.iter_mut().for_each(Stream::abort);
            self.note_cpu();
            for stream in &mut self.streams {
                stream.received().await;
            }
            printed = self.row(true);
            tokio::select! {
                _ = tokio::time::timeout(STOP_WITHIN, self.request_results(reason)) => {}
                // A second signal means that the user does not want to wait.
                _ = signals.next() => {}
            }
        }
        let within = if reason.is_none() { CLOSE_WITHIN } else { CLOSE_STOPPED_WITHIN };
        if tokio::time::timeout(within, control.close()).await.is_err() {
            control.abort();
        }
        let direction = self.spec.direction;
        let streams = self.streams.iter().map(|s| {
            StreamEnd::new(s.n, direction, &s.result(), s.server.as_ref(), reason.is_none())
        });
        let streams = streams.collect();
        let ending = Ending { complete: reason.is_none(), reason, exit_code: exit.code() };
        let cpu = [self.client_cpu_percent, self.server_cpu_percent];
        let end = End::new(ending, direction, streams, cpu);
        printed.and(self.reporter.end(&end))?;
        match stop {
            Some(Stop::Failure(failure)) => Err(failure),
            Some(Stop::Signal(signal)) => {
                output::note(&signal.to_string());
                Ok(exit)
            }
            None => Ok(exit),
        }
    }

    /// Tells the server that the test is over, and requests its remaining results.
    async fn request_results(&mut self, reason: &str) -> CliResult<()> {
        self.requester.request(Request::Stopped(reason.to_owned())).await?;
        for stream in self.streams.iter_mut().filter(|s| s.server.is_none()) {
            stream.server = Some(request_stream(&mut self.requester, stream.n).await?);
        }
        if let Reply::Cpu(percent) = self.requester.request(Request::Cpu).await? {
            self.server_cpu_percent = Some(percent);
        }
        Ok(())
    }
}

fn spec_of(args: &ClientArgs) -> CliResult<Spec> {
    let length = args.length.unwrap_or(DEFAULT_LENGTH);
    if length < HEADER_BYTES {
        return Err(Failure::new(
            Exit::Usage,
            format!("messages of {length} bytes are too short to measure with"),
        )
        .hint(format!("use -l {HEADER_BYTES} or more")));
    }
    let direction = match (args.reverse, args.bidir) {
        (true, _) => Direction::Reverse,
        (_, true) => Direction::Both,
        _ => Direction::Forward,
    };
    Ok(Spec {
        protocol: PROTOCOL,
        direction,
        streams: args.parallel,
        duration_s: args.time.as_secs_f64(),
        length,
        bits_per_s: args.bitrate,
        ccid: args.net.ccid.unwrap_or(2),
    })
}

async fn connect_first(
    all: &[Address],
    args: &ClientArgs,
    options: &Options,
) -> CliResult<(Connection, Address)> {
    let mut last = Failure::new(Exit::Unreachable, "the host has no address");
    for peer in all {
        match connect(peer, args, CONTROL, options).await {
            Ok(connection) => return Ok((connection, *peer)),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Opens a connection from a separate UDP port.
async fn connect(
    peer: &Address,
    args: &ClientArgs,
    service: ServiceCode,
    options: &Options,
) -> CliResult<Connection> {
    let endpoint = Endpoint::bind_with(args.net.client_at(peer), &args.net.endpoint_options())?;
    let connecting = endpoint.connect(*peer, service, options);
    match tokio::time::timeout(args.timeout, connecting).await {
        Ok(connected) => Ok(connected?),
        Err(_elapsed) => Err(Error::NoAnswer { peer: *peer }.into()),
    }
}

/// The length of messages: as given, or what fits into one packet.
fn fitting(args: &ClientArgs, connection: &Connection) -> CliResult<usize> {
    let max = connection.max_message_size();
    match args.length {
        Some(len) if len > max => Err(failed(Error::MessageTooLarge { len, max })),
        Some(len) => Ok(len),
        None => Ok(DEFAULT_LENGTH.min(max).max(HEADER_BYTES)),
    }
}

/// Tells the server which stream this connection is, until it confirms.
async fn attach(connection: &Connection, test: u64, stream: u16) -> CliResult<()> {
    let header = Header { kind: Kind::Attach, stream, test, number: 0, made_ns: 0 };
    for _ in 0..25 {
        connection.send(header.message()).await?;
        match tokio::time::timeout(ATTACH_AGAIN, connection.recv()).await {
            Ok(Ok(Some(message))) => {
                let kind = Header::read(&message).map(|h| h.kind);
                if kind == Some(Kind::Attached) {
                    return Ok(());
                }
            }
            Ok(Ok(None)) => break,
            Ok(Err(e)) => return Err(e.into()),
            Err(_elapsed) => {}
        }
    }
    Err(Failure::new(Exit::ConnectionLost, "the server did not accept the stream")
        .hint("run the same version of udccp on both sides"))
}

fn refused(answer: &Reply) -> Failure {
    let why = match answer {
        Reply::Refused(why) => why.as_str(),
        _ => "unexpected answer",
    };
    Failure::new(Exit::Refused, format!("the server refused this test: {why}"))
        .hint("change the flag that the message names, or run the same version on both sides")
}

/// Requests the server's result for a stream.
async fn request_stream(requester: &mut Requester<'_>, n: u16) -> CliResult<StreamResult> {
    match requester.request(Request::Stream(n)).await? {
        Reply::Stream(result) => Ok(result),
        other => Err(refused(&other)),
    }
}
