//! Tests of the negotiator. Options are written as text, such as `Change R(6; 1)`.

mod answers;
mod captures;
mod ccid_specific;
mod handshake;
mod linux;
mod lossy;
mod order;
mod timing;

use std::sync::Arc;

use udccp_base::{Duration, Instant};
use udccp_wire::{FeatureNumber, OptionRef, OptionValue, PacketType, Seqno};

use super::{
    Activated, ChangeError, FeatureError, FeaturePreferences, Location, Negotiator, PacketContext,
    Phase, Role,
};

const L: Location = Location::Local;
const R: Location = Location::Remote;

/// A packet that contains only options.
#[derive(Clone, Debug)]
struct Packet {
    context: PacketContext,
    options: Vec<OptionValue>,
}

impl Packet {
    /// The options as text.
    fn shows(&self) -> Vec<String> {
        self.options.iter().map(|o| show(&o.as_ref().unwrap())).collect()
    }
}

/// One end: the negotiator and the parts of a connection that it needs.
#[derive(Debug)]
struct End {
    engine: Negotiator,
    now: Instant,
    gss: Seqno,
    gsr: Option<Seqno>,
}

impl End {
    fn new(role: Role, preferences: &FeaturePreferences) -> Self {
        let gss = Seqno::new(if role == Role::Client { 999 } else { 4999 });
        Self {
            engine: Negotiator::new(role, Arc::new(preferences.clone())),
            now: Instant::ZERO,
            gss,
            gsr: None,
        }
    }

    /// One end of an open connection with the default preferences.
    fn open(role: Role) -> Self {
        let mut end = Self::new(role, &FeaturePreferences::new());
        end.engine.set_phase(Phase::Open);
        end
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    /// Sends a packet.
    fn send(&mut self, packet_type: PacketType) -> Packet {
        self.send_with_room(packet_type, 1000)
    }

    fn send_with_room(&mut self, packet_type: PacketType, room: usize) -> Packet {
        self.gss = self.gss.next();
        let mut options = Vec::new();
        let emit = &mut |option: &OptionRef<'_>| options.push(OptionValue::from(*option));
        let written = self.engine.write_options(self.now, self.gss, packet_type, room, emit);
        let size = |o: &OptionValue| if o.kind < 32 { 1 } else { 2 + o.data.len() };
        assert_eq!(written, options.iter().map(size).sum::<usize>());
        assert!(written <= room);
        let ackno = packet_type.has_ack().then_some(self.gsr).flatten();
        Packet { context: PacketContext { packet_type, seq: self.gss, ackno }, options }
    }

    /// Receives a packet.
    fn receive(&mut self, packet: &Packet) -> Result<(), FeatureError> {
        let seq = packet.context.seq;
        let gsr = self.gsr.map_or(seq, |g| g.max(seq));
        self.gsr = Some(gsr);
        self.engine.begin_packet(seq, gsr);
        let mut mandatory = false;
        for option in &packet.options {
            let option = option.as_ref().unwrap();
            self.engine.on_option(&packet.context, &option, mandatory)?;
            mandatory = option == OptionRef::Mandatory;
        }
        Ok(())
    }

    /// Receives a new packet with these options, which acknowledges our latest packet.
    fn receive_text(&mut self, options: &[&str]) -> Result<(), FeatureError> {
        let seq = self.gsr.map_or(Seqno::new(4999), Seqno::next);
        self.receive_at(seq, Some(self.gss), options)
    }

    fn receive_at(
        &mut self,
        seq: Seqno,
        ackno: Option<Seqno>,
        options: &[&str],
    ) -> Result<(), FeatureError> {
        let packet_type = if ackno.is_some() { PacketType::Ack } else { PacketType::Request };
        let context = PacketContext { packet_type, seq, ackno };
        self.receive(&Packet { context, options: options.iter().map(|t| read(t)).collect() })
    }

    fn value(&self, location: Location, feature: FeatureNumber) -> u64 {
        self.engine.value(location, feature).unwrap()
    }

    fn news(&mut self) -> Vec<Activated> {
        core::iter::from_fn(|| self.engine.poll_activated()).collect()
    }
}

/// `Mandatory`, or `Change L(1; 2 3)`: type, feature, value bytes.
fn show(option: &OptionRef<'_>) -> String {
    let (name, feature, value) = match *option {
        OptionRef::Mandatory => return "Mandatory".into(),
        OptionRef::ChangeL { feature, value } => ("Change L", feature, value),
        OptionRef::ConfirmL { feature, value } => ("Confirm L", feature, value),
        OptionRef::ChangeR { feature, value } => ("Change R", feature, value),
        OptionRef::ConfirmR { feature, value } => ("Confirm R", feature, value),
        ref other => return format!("{other:?}"),
    };
    let bytes: Vec<String> = value.iter().map(u8::to_string).collect();
    format!("{name}({}; {})", feature.0, bytes.join(" "))
}

/// The inverse of `show`.
fn read(text: &str) -> OptionValue {
    if text == "Mandatory" {
        return OptionValue::from(OptionRef::Mandatory);
    }
    let (name, rest) = text.split_once('(').unwrap();
    let (feature, bytes) = rest.trim_end_matches(')').split_once(';').unwrap();
    let feature = FeatureNumber(feature.parse().unwrap());
    let bytes: Vec<u8> = bytes.split_whitespace().map(|b| b.parse().unwrap()).collect();
    let value = &bytes[..];
    OptionValue::from(match name {
        "Change L" => OptionRef::ChangeL { feature, value },
        "Confirm L" => OptionRef::ConfirmL { feature, value },
        "Change R" => OptionRef::ChangeR { feature, value },
        "Confirm R" => OptionRef::ConfirmR { feature, value },
        _ => panic!("no option is called {name}"),
    })
}

/// Preferences with these lists.
fn prefer(wishes: &[(Location, FeatureNumber, &[u64])]) -> FeaturePreferences {
    let mut preferences = FeaturePreferences::new();
    for (location, feature, values) in wishes {
        preferences.set(*location, *feature, values).unwrap();
    }
    preferences
}
