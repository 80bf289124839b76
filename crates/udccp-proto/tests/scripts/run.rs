//! Runs a script line by line.

use udccp_base::{Duration, Ecn, Instant, Machine, Message, Payload};
use udccp_proto::{
    ConnectOptions, ConnectionId, InviteOptions, ListenConfig, PathReport, RecvError,
};
use udccp_wire::ServiceCode;

use crate::error::ScriptError;
use crate::packet::{Data, PacketTemplate};
use crate::script::{Action, Setting, Step, When};
use crate::settings::{self, Value};
use crate::tokens::Number;
use crate::world::{START, Sent, World, describe};

/// Allowed deviation of a time, in either direction.
const TOLERANCE: Duration = Duration::from_millis(1);

/// How long `*` waits.
const PATIENCE: Duration = Duration::from_secs(2000);

/// Runs a script. An error comes with the trace so far.
pub(crate) fn run(steps: &[Step]) -> Result<(), (ScriptError, Vec<String>)> {
    let mut world = World::new();
    let last = steps.last().map_or(0, |s| s.line);
    let done = steps.iter().try_for_each(|step| world.take(step));
    let done = done.and_then(|()| {
        world.drain();
        world.nothing_sent(last, "the script ends")
    });
    done.map_err(|error| (error, world.trace))
}

impl World {
    fn take(&mut self, step: &Step) -> Result<(), ScriptError> {
        if let Action::Leaves { packet, others } = &step.action {
            self.start();
            return self.leaves(step, packet, *others);
        }
        if !matches!(step.action, Action::Set(_)) {
            self.start();
        }
        self.advance(step)?;
        self.nothing_sent(step.line, "this line")?;
        self.act(step)
    }

    /// Advances to the time of a line. Nothing may be sent before that.
    fn advance(&mut self, step: &Step) -> Result<(), ScriptError> {
        let to = match step.when {
            When::Now => return Ok(()),
            When::Sometime => {
                return Err(ScriptError::new(step.line, "* is a time for packets (>) only"));
            }
            When::At { after, from, .. } => self.time(after, from),
        };
        if to < self.now {
            let says = format!("it is {:.4} s already", self.seconds(self.now));
            return Err(ScriptError::new(step.line, says));
        }
        // Packets due at that time are caused by earlier lines.
        self.pass_until(to);
        if self.sent.is_empty() { Ok(()) } else { self.nothing_sent(step.line, "this line") }
    }

    fn time(&self, after: bool, nanos: u64) -> Instant {
        if after {
            self.now + Duration::from_nanos(nanos)
        } else {
            Instant::from_nanos(START + nanos)
        }
    }

    /// Checks that everything sent was matched by a line.
    pub(crate) fn nothing_sent(&self, line: usize, before: &str) -> Result<(), ScriptError> {
        let Some(Sent { at, datagram }) = self.sent.front() else { return Ok(()) };
        let says = format!(
            "before {before}, at {:.4} s, the endpoint sends what no line expects:\n  {}",
            self.seconds(*at),
            describe(datagram)
        );
        Err(ScriptError::new(line, says))
    }

    /// Expects the endpoint to send this packet.
    fn leaves(
        &mut self,
        step: &Step,
        packet: &PacketTemplate,
        others: bool,
    ) -> Result<(), ScriptError> {
        let (from, to) = match step.when {
            When::Now if others => (self.now, self.now + PATIENCE),
            When::Now => (self.now, self.now + TOLERANCE),
            When::Sometime => (self.now, self.now + PATIENCE),
            When::At { after, from, to } => {
                let (from, to) = (self.time(after, from), self.time(after, to));
                (Instant::from_nanos(from.as_nanos() - TOLERANCE.as_nanos()), to + TOLERANCE)
            }
        };
        let error = |says: String| ScriptError::new(step.line, says);
        let mut nearest = None;
        loop {
            if self.sent.is_empty() {
                self.pass_until(to);
            }
            let Some(Sent { at, datagram }) = self.sent.pop_front().filter(|s| s.at <= to) else {
                let until = self.seconds(to);
                let others = nearest.map_or(String::new(), |n| format!("; the last other: {n}"));
                return Err(error(format!("nothing like this is sent until {until:.4} s{others}")));
            };
            let wrong = self.mismatch(packet, &datagram);
            let text = describe(&datagram);
            match wrong {
                None if at < from => {
                    let (is, from) = (self.seconds(at), self.seconds(from));
                    return Err(error(format!("sent at {is:.4} s, before {from:.4} s:\n  {text}")));
                }
                None => {
                    self.note(step.line, "     ^ as expected");
                    return Ok(());
                }
                Some(wrong) if others => nearest = Some(format!("{wrong}:\n  {text}")),
                Some(wrong) => return Err(error(format!("{wrong}; the endpoint sends\n  {text}"))),
            }
        }
    }

    fn act(&mut self, step: &Step) -> Result<(), ScriptError> {
        let (line, now) = (step.line, self.now);
        let error = |says: String| ScriptError::new(line, says);
        match &step.action {
            Action::Leaves { .. } => {}
            Action::Arrives(packet) => {
                let datagram = self.write(packet).map_err(error)?;
                let text = format!("<      {}", describe(&datagram));
                self.note(line, &text);
                self.end.handle_datagram(now, datagram);
                self.collect();
            }
            Action::Raw(data) => {
                let bytes = match data {
                    Data::Text(bytes) => bytes.clone(),
                    Data::Length(n) => vec![0; *n],
                };
                self.note(line, &format!("<      {} raw bytes", bytes.len()));
                self.end.handle_datagram(now, self.datagram(bytes, Ecn::NotEct));
            }
            Action::Nothing => {
                self.drain();
                self.nothing_sent(line, "or at this line")?;
            }
            Action::Open { is_server, settings } => {
                match is_server {
                    true => self.listen(line, settings, &None)?,
                    false => self.connect(line, settings, &None)?,
                }
                self.open(*is_server).map_err(error)?;
            }
            Action::Set(all) => self.set(line, all)?,
            Action::Listen { settings, error } => self.listen(line, settings, error)?,
            Action::Connect { settings, error } => self.connect(line, settings, error)?,
            Action::Invite(settings) => self.invite(line, settings)?,
            Action::Send { data, settings, error } => self.send(line, data, settings, error)?,
            Action::Let(name, number) => {
                let value = self.variables.value(number).map_err(error)?;
                self.variables.set(name, value);
            }
            Action::Icmp { mtu, quotes } => self.icmp(line, *mtu, quotes)?,
            Action::Backlog(permille) => self.end.set_receive_backlog(*permille),
            Action::Unlisten => {
                if let Some(listener) = self.listener {
                    self.end.unlisten(now, listener);
                }
            }
            Action::State(_) | Action::Event(_) | Action::Check(_) => self.look(step)?,
            _ => self.call(step)?,
        }
        Ok(())
    }

    fn connection(&self, line: usize) -> Result<ConnectionId, ScriptError> {
        self.id.ok_or_else(|| ScriptError::new(line, "there is no connection yet"))
    }

    fn call(&mut self, step: &Step) -> Result<(), ScriptError> {
        let (now, id) = (self.now, self.connection(step.line)?);
        self.note(step.line, &format!("  call {:?}", step.action));
        match &step.action {
            Action::Close => self.end.close(now, id),
            Action::Abort => self.end.abort(now, id),
            Action::Release => self.end.release(now, id),
            Action::ShutdownRead => self.end.shutdown_read(now, id),
            Action::Slow(is_slow) => self.end.set_slow_receiver(now, id, *is_slow),
            Action::Mtu(mtu) => self.end.set_path_mtu(now, id, *mtu),
            Action::Recv(wanted) => self.recv(step.line, id, wanted.as_ref())?,
            Action::RecvEnd(reason) => match self.end.recv(now, id) {
                Err(RecvError::Closed(is)) if is.to_string().contains(reason) => {}
                is => return Err(ScriptError::new(step.line, format!("recv gives {is:?}"))),
            },
            _ => {}
        }
        self.collect();
        Ok(())
    }

    fn recv(
        &mut self,
        line: usize,
        id: ConnectionId,
        wanted: Option<&Data>,
    ) -> Result<(), ScriptError> {
        let is = self.end.recv(self.now, id);
        let fits = match (&is, wanted) {
            (Ok(None), None) => true,
            (Ok(Some(is)), Some(Data::Text(text))) => is.to_bytes() == *text,
            (Ok(Some(is)), Some(Data::Length(n))) => is.len() == *n,
            _ => false,
        };
        if fits { Ok(()) } else { Err(ScriptError::new(line, format!("recv gives {is:?}"))) }
    }

    /// Runs a line that only checks.
    fn look(&mut self, step: &Step) -> Result<(), ScriptError> {
        let error = |says: String| Err(ScriptError::new(step.line, says));
        self.collect();
        match &step.action {
            Action::State(wanted) => {
                let is = self.state().to_string();
                if is != *wanted {
                    return error(format!("the state is {is}, not {wanted}"));
                }
            }
            Action::Event(None) => {
                if let Some(event) = self.events.front() {
                    return error(format!("there is an event: {event}"));
                }
            }
            Action::Event(Some(wanted)) => {
                let place = self.events.iter().position(|e| e.starts_with(wanted.as_str()));
                let Some(place) = place else {
                    return error(format!("no event {wanted}; there are {:?}", self.events));
                };
                self.events.drain(..=place);
            }
            Action::Check(all) => {
                let id = self.connection(step.line)?;
                let stats = self.end.stats(id);
                let stats =
                    stats.ok_or_else(|| ScriptError::new(step.line, "the connection is gone"))?;
                for (name, wanted) in all {
                    let is = settings::statistic(&stats, step.line, name)?;
                    if !is.is_some_and(|is| self.variables.meets(wanted, is)) {
                        return error(format!("{name} is {is:?}"));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn set(&mut self, line: usize, all: &[Setting]) -> Result<(), ScriptError> {
        for setting in all {
            if !settings::apply(&mut self.config, line, setting)? {
                continue;
            }
            let (name, values) = (setting.0.as_str(), &setting.1);
            let v = Value { line, name, values };
            match name {
                "udp" => self.addresses.iter_mut().for_each(|a| a.set_port(6511)),
                "ip" if v.number::<u8>()? == 6 => {
                    self.addresses = ["[2001:db8::1]:0", "[2001:db8::2]:0"]
                        .map(|a| a.parse().expect("an address"));
                }
                "ip" => {}
                "service" => self.service = ServiceCode(v.number()?),
                "resets" => self.endpoint.out_of_the_blue_resets_per_sec = v.number()?,
                "connections" => self.endpoint.max_connections = v.number()?,
                "timewaits" => self.endpoint.max_timewaits = v.number()?,
                other => return Err(settings::unknown(line, other)),
            }
        }
        Ok(())
    }

    fn listen(
        &mut self,
        line: usize,
        all: &[Setting],
        error: &Option<String>,
    ) -> Result<(), ScriptError> {
        self.note(line, "  call listen");
        let mut listen = ListenConfig::new(self.service);
        for setting in all {
            let v = Value { line, name: &setting.0, values: &setting.1 };
            match setting.0.as_str() {
                "backlog" => listen.backlog = v.number()?,
                "init_cookies" => listen.init_cookies = settings::init_cookies(&v)?,
                "cookie_lifetime" => listen.cookie_lifetime = v.time()?,
                "service" => {
                    let codes = setting.1.iter().filter_map(|c| c.parse().ok());
                    listen.services = codes.map(ServiceCode).collect();
                    self.service = listen.services[0];
                }
                _ => self.set(line, std::slice::from_ref(setting))?,
            }
        }
        listen.connection = self.config.clone().into();
        let made = self.end.listen(None, self.ports[0], listen);
        expect_error(line, made.as_ref().err().map(ToString::to_string), error)?;
        self.listener = made.ok().or(self.listener);
        Ok(())
    }

    fn invite(&mut self, line: usize, all: &[Setting]) -> Result<(), ScriptError> {
        self.note(line, "  call invite");
        self.set(line, all)?;
        let options = InviteOptions {
            local: self.addresses[0],
            local_port: self.ports[0],
            remote: self.addresses[1],
            remote_port: self.ports[1],
            service: self.service,
            sends_listen: true,
            config: self.config.clone().into(),
        };
        let made = self.end.invite(self.now, options);
        self.listener = Some(made.map_err(|e| ScriptError::new(line, e.to_string()))?);
        Ok(())
    }

    fn connect(
        &mut self,
        line: usize,
        all: &[Setting],
        error: &Option<String>,
    ) -> Result<(), ScriptError> {
        self.note(line, "  call connect");
        self.set(line, all)?;
        if self.id.is_none() {
            self.ports = [40_000, 5001];
        }
        let options = ConnectOptions {
            local: self.addresses[0],
            local_port: Some(self.ports[0]),
            remote: self.addresses[1],
            remote_port: self.ports[1],
            service: self.service,
            config: self.config.clone().into(),
        };
        let made = self.end.connect(self.now, options);
        expect_error(line, made.as_ref().err().map(ToString::to_string), error)?;
        self.id = made.ok().or(self.id);
        Ok(())
    }

    fn send(
        &mut self,
        line: usize,
        data: &Data,
        all: &[Setting],
        error: &Option<String>,
    ) -> Result<(), ScriptError> {
        let id = self.connection(line)?;
        let payload = match data {
            Data::Text(text) => Payload::Bytes(text.clone().into()),
            Data::Length(n) => Payload::Zeros(*n as u32),
        };
        self.note(line, &format!("  call send {} bytes", payload.len()));
        let (mut message, mut times) = (Message::new(payload), 1);
        for (name, values) in all {
            let v = Value { line, name, values };
            match name.as_str() {
                "times" => times = v.number()?,
                "priority" => message.priority = v.number()?,
                "deadline" => message.deadline = Some(self.now + v.time()?),
                other => {
                    let known = ["times", "priority", "deadline"];
                    return Err(ScriptError::unknown(line, "setting of send", other, &known));
                }
            }
        }
        for _ in 0..times {
            let sent = self.end.send(self.now, id, message.clone());
            expect_error(line, sent.err().map(|e| e.to_string()), error)?;
        }
        self.collect();
        Ok(())
    }

    fn icmp(&mut self, line: usize, mtu: Option<u16>, quotes: &Number) -> Result<(), ScriptError> {
        let seq = self.variables.value(quotes).map_err(|e| ScriptError::new(line, e))?;
        let seq = crate::variables::wrapped(seq);
        self.note(line, &format!("<      ICMP {mtu:?} quotes {seq}"));
        let mut header = Vec::new();
        header.extend_from_slice(&self.ports[0].to_be_bytes());
        header.extend_from_slice(&self.ports[1].to_be_bytes());
        header.extend_from_slice(&[4, 0, 0, 0]);
        header.extend_from_slice(&(5 << 56 | seq).to_be_bytes());
        let report = mtu.map_or(PathReport::Unreachable, PathReport::PathMtu);
        let [local, remote] = self.addresses;
        self.end.handle_path_report(self.now, local, remote, &header, report);
        self.collect();
        Ok(())
    }
}

/// Expects an error with this text, or no error.
fn expect_error(
    line: usize,
    is: Option<String>,
    wanted: &Option<String>,
) -> Result<(), ScriptError> {
    match (is, wanted) {
        (None, None) => Ok(()),
        (Some(is), Some(wanted)) if is.contains(wanted) => Ok(()),
        (Some(is), _) => Err(ScriptError::new(line, format!("the call fails: {is}"))),
        (None, Some(wanted)) => {
            Err(ScriptError::new(line, format!("the call succeeds, instead of failing: {wanted}")))
        }
    }
}
