//! The client: agrees on a test, runs its side of it, reports both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use tokio::task::JoinHandle;
use udccp::{Address, Connection, Endpoint, Error, Options, ServiceCode};

use super::control::{Answer, Ask, Asker, StreamResult};
use super::flow::{self, Load, Sent};
use super::messages::{HEADER_BYTES, Header, Kind};
use super::meter::{Meter, Received};
use super::report::{End, Interval, Reporter, StreamEnd, StreamInterval};
use super::spec::{Direction, PROTOCOL, Spec, with_queues};
use super::{CONTROL, ClientArgs, STREAM, clock};
use crate::exit::{Exit, Failure, Outcome};

/// The message that attaches a stream is repeated after this time.
const ATTACH_AGAIN: Duration = Duration::from_millis(200);
/// How long a stream may take to close at the end.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// One stream of the test.
struct Stream {
    connection: Arc<Connection>,
    meter: Arc<Meter>,
    sending: Option<JoinHandle<Result<Sent, Error>>>,
    receiving: JoinHandle<Result<(), Error>>,
    /// At the last report.
    seen_sent: Sent,
    seen_received: Received,
}

/// Runs one test.
pub(super) async fn run(args: &ClientArgs) -> Outcome<Exit> {
    let spec = spec_of(args)?;
    let options = with_queues(args.net.options());
    let all = args.net.resolve(&args.host, args.port)?;
    let (control, peer) = connect_first(&all, args, &options).await?;
    check_length(args, &control)?;
    let mut asker = Asker::new(&control);
    let test = match asker.ask(Ask::Start(spec.clone())).await? {
        Answer::Ready(test) => test,
        other => return Err(refused(&other)),
    };
    let mut reporter = Reporter::new(args.json, args.json_stream, &spec, &peer.to_string())?;
    let epoch = clock();
    let mut streams = Vec::new();
    for n in 0..spec.streams {
        let connection = connect(&peer, args, STREAM, &options).await?;
        attach(&connection, test, n).await?;
        streams.push(Stream::new(connection, epoch));
    }
    asker.ask(Ask::Go).await?;
    let (began, cpu) = (clock(), ProcessTime::now());
    for (stream, n) in streams.iter_mut().zip(0..) {
        stream.start(&spec, test, n);
    }
    measure(args, &mut streams, &mut reporter, began).await?;
    let cpu_percent = cpu.elapsed().as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    let mut ends = Vec::new();
    for (stream, n) in streams.into_iter().zip(0..) {
        ends.push(finish(stream, n, &mut asker).await?);
    }
    let server_cpu_percent = match asker.ask(Ask::Cpu).await? {
        Answer::Cpu(percent) => Some(percent),
        _ => None,
    };
    let _ = tokio::time::timeout(CLOSE_WITHIN, control.close()).await;
    reporter.end(&End::new(ends, cpu_percent, server_cpu_percent))?;
    Ok(Exit::Success)
}

fn spec_of(args: &ClientArgs) -> Outcome<Spec> {
    if args.length < HEADER_BYTES {
        return Err(Failure::new(
            Exit::Usage,
            format!("messages of {} bytes are too short to measure with", args.length),
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
        length: args.length,
        bits_per_s: args.bitrate,
        ccid: args.net.ccid.unwrap_or(2),
    })
}

async fn connect_first(
    all: &[Address],
    args: &ClientArgs,
    options: &Options,
) -> Outcome<(Connection, Address)> {
    let mut last = Failure::new(Exit::Unreachable, "the host has no address");
    for peer in all {
        match connect(peer, args, CONTROL, options).await {
            Ok(connection) => return Ok((connection, *peer)),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// A connection over a UDP port of its own.
async fn connect(
    peer: &Address,
    args: &ClientArgs,
    service: ServiceCode,
    options: &Options,
) -> Outcome<Connection> {
    let endpoint = Endpoint::bind_with(args.net.client_at(peer), &args.net.endpoint_options())?;
    let connecting = endpoint.connect(*peer, service, options);
    match tokio::time::timeout(args.timeout, connecting).await {
        Ok(connected) => Ok(connected?),
        Err(_elapsed) => Err(Error::NoAnswer { peer: *peer }.into()),
    }
}

fn check_length(args: &ClientArgs, connection: &Connection) -> Outcome<()> {
    let max = connection.max_message_size();
    if args.length > max {
        let e = Error::MessageTooLarge { len: args.length, max };
        return Err(Failure::from(e).hint(format!("use -l {max} or less")));
    }
    Ok(())
}

/// Tells the server which stream this connection is, until it says that it knows.
async fn attach(connection: &Connection, test: u64, stream: u16) -> Outcome<()> {
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
    Err(Failure::new(Exit::ConnectionLost, "the server does not take the stream")
        .hint("run the same version of udccp on both sides"))
}

fn refused(answer: &Answer) -> Failure {
    let why = match answer {
        Answer::Refused(why) => why.as_str(),
        _ => "it answers something else",
    };
    Failure::new(Exit::Refused, format!("the server does not run this test: {why}"))
        .hint("change the flag that the message names, or run the same version on both sides")
}

impl Stream {
    fn new(connection: Connection, epoch: Instant) -> Self {
        let (connection, meter) = (Arc::new(connection), Arc::new(Meter::new(epoch)));
        let receiving = {
            let (connection, meter) = (Arc::clone(&connection), Arc::clone(&meter));
            tokio::spawn(async move { flow::receive(&connection, &meter).await })
        };
        Self {
            seen_sent: Sent::of(&connection, 0.0),
            seen_received: Received::default(),
            connection,
            meter,
            sending: None,
            receiving,
        }
    }

    fn start(&mut self, spec: &Spec, test: u64, stream: u16) {
        if !spec.direction.client_sends() {
            return;
        }
        let load = Load {
            test,
            stream,
            length: spec.length,
            bits_per_s: spec.bits_per_s,
            duration: spec.duration(),
        };
        let connection = Arc::clone(&self.connection);
        self.sending = Some(tokio::spawn(async move { flow::send(&connection, load).await }));
    }

    /// What went and came since the last look.
    fn look(&mut self, stream: u16, seconds: f64) -> StreamInterval {
        let (sent, received) = (Sent::of(&self.connection, seconds), self.meter.total());
        let interval = StreamInterval {
            stream,
            sent: self.sending.is_some().then(|| sent.since(&self.seen_sent, seconds)),
            received: (received.messages > 0 || self.sending.is_none())
                .then(|| received.since(&self.seen_received, seconds)),
        };
        (self.seen_sent, self.seen_received) = (sent, received);
        interval
    }
}

/// Reports at every interval until the time is over, or the user has seen enough.
async fn measure(
    args: &ClientArgs,
    streams: &mut [Stream],
    reporter: &mut Reporter,
    began: Instant,
) -> Outcome<()> {
    let end = began + args.time;
    let mut from = began;
    while from < end {
        let to = if args.interval.is_zero() { end } else { end.min(from + args.interval) };
        tokio::select! {
            () = tokio::time::sleep_until(to.into()) => {}
            _ = tokio::signal::ctrl_c() => {
                streams.iter_mut().for_each(|s| if let Some(s) = s.sending.take() { s.abort() });
                return Ok(());
            }
        }
        let now = clock();
        let seconds = (now - from).as_secs_f64();
        let looks = streams.iter_mut().zip(0..).map(|(s, n)| s.look(n, seconds)).collect();
        if !args.interval.is_zero() {
            let span = [from, now].map(|at| (at - began).as_secs_f64());
            reporter.interval(Interval::new(span, looks))?;
        }
        if let Some(lost) = streams.iter().find(|s| s.receiving.is_finished()) {
            return lost.connection.closed().await.map_err(Failure::from);
        }
        if streams.iter().any(|s| s.sending.as_ref().is_some_and(JoinHandle::is_finished)) {
            // At the end of the time, or before it with an error that `finish` tells.
            return Ok(());
        }
        from = to;
    }
    Ok(())
}

/// Waits for the end of a stream and asks the server how it went there.
async fn finish(stream: Stream, n: u16, asker: &mut Asker<'_>) -> Outcome<StreamEnd> {
    let sent = match stream.sending {
        Some(sending) => match sending.await {
            Ok(sent) => Some(sent?),
            Err(_aborted) => Some(Sent::of(&stream.connection, 0.0)),
        },
        None => None,
    };
    let server = match asker.ask(Ask::Stream(n)).await? {
        Answer::Stream(result) => result,
        other => return Err(refused(&other)),
    };
    let client =
        StreamResult { sent, received: server.sent.is_some().then(|| stream.meter.total()) };
    let _ = tokio::time::timeout(CLOSE_WITHIN, stream.connection.close()).await;
    stream.receiving.abort();
    Ok(StreamEnd::new(n, &client, &server))
}
