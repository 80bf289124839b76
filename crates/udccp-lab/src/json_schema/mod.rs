//! Writes the JSON Schema of a scenario, for programs that generate scenarios. The typed objects of
//! the Python package are generated from it.
//!
//! A test compares it, table by table and key by key, with the reader of files.

mod tables;
mod topology;
mod traffic;

use serde_json::{Map, Value, json};

use crate::schema::SCHEMA;

/// The type of a key's value.
#[derive(Clone, Debug)]
enum Kind {
    /// A quantity with its unit; the name of its definition, such as `Time`.
    Quantity(&'static str),
    /// Any text.
    Text,
    /// An integer in this range.
    Whole(u64, Option<u64>),
    /// A number.
    Number,
    /// A boolean.
    Flag,
    /// One of these words.
    Word(Vec<&'static str>),
    /// A constant that identifies the table.
    Is(Value),
    /// A table; the name of its definition.
    Table(&'static str),
    /// A list.
    List(Box<Kind>),
    /// One of several.
    Either(Vec<Kind>),
}

/// One key of a table.
#[derive(Clone, Debug)]
struct Key {
    name: &'static str,
    kind: Kind,
    is_needed: bool,
    about: &'static str,
}

/// One table.
#[derive(Clone, Debug)]
struct Table {
    name: &'static str,
    about: &'static str,
    keys: Vec<Key>,
}

/// Quantities as texts with their units: name, what, example.
const QUANTITIES: [(&str, &str, &str); 8] = [
    ("Time", "A time with its unit: ns, us, ms, s, min or h", "25 ms"),
    ("Rate", "A rate with its unit: bit/s, kbit/s, Mbit/s or Gbit/s", "100 Mbit/s"),
    ("Size", "A size with its unit: B, kB, MB or GB", "1500 B"),
    ("Percent", "A share in percent, 0 to 100", "1.5 %"),
    ("Packets", "A number of packets", "100 packets"),
    (
        "Limit",
        "The limit of a queue: a multiple of the bandwidth-delay product of the path, optionally \
         plus packets (\"0.5 bdp + 128 packets\"), packets, bytes, or \"unlimited\"",
        "1.0 bdp",
    ),
    ("StartWindow", "A first window: \"rfc3390\", \"rfc6928\" or a number of packets", "3 packets"),
    ("Service", "A service code of DCCP", "SC:PERF"),
];

const TIME: Kind = Kind::Quantity("Time");
const RATE: Kind = Kind::Quantity("Rate");
const SIZE: Kind = Kind::Quantity("Size");
const PERCENT: Kind = Kind::Quantity("Percent");
const PACKETS: Kind = Kind::Quantity("Packets");
const LIMIT: Kind = Kind::Quantity("Limit");
const START_WINDOW: Kind = Kind::Quantity("StartWindow");
const SERVICE: Kind = Kind::Quantity("Service");

/// A required key.
fn required(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, is_needed: true, about }
}

/// An optional key.
fn optional(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, is_needed: false, about }
}

/// The constant `kind` that distinguishes tables.
fn kind(word: &'static str) -> Key {
    required("kind", Kind::Is(word.into()), "Selects the form of this table")
}

fn table(name: &'static str, about: &'static str, keys: Vec<Key>) -> Table {
    Table { name, about, keys }
}

/// The words of an enum of the schema.
fn one_of<T>(table: &'static [(&'static str, T)]) -> Kind {
    Kind::Word(table.iter().map(|(word, _)| *word).collect())
}

impl Kind {
    fn json(&self) -> Value {
        match self {
            Self::Quantity(name) | Self::Table(name) => {
                json!({ "$ref": format!("#/$defs/{name}") })
            }
            Self::Text => json!({ "type": "string" }),
            Self::Whole(least, None) => json!({ "type": "integer", "minimum": least }),
            Self::Whole(least, Some(most)) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::Number => json!({ "type": "number" }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Word(names) => json!({ "enum": names }),
            Self::Is(value) => json!({ "const": value }),
            Self::List(of) => json!({ "type": "array", "items": of.json() }),
            Self::Either(kinds) => {
                json!({ "anyOf": kinds.iter().map(Self::json).collect::<Vec<_>>() })
            }
        }
    }
}

impl Table {
    fn json(&self) -> Value {
        let property = |key: &Key| {
            let mut value = Map::new();
            value.insert("description".to_owned(), key.about.into());
            if let Value::Object(kind) = key.kind.json() {
                value.extend(kind);
            }
            (key.name.to_owned(), Value::Object(value))
        };
        let needed: Vec<&str> = self.keys.iter().filter(|k| k.is_needed).map(|k| k.name).collect();
        json!({
            "type": "object",
            "description": self.about,
            "properties": self.keys.iter().map(property).collect::<Map<_, _>>(),
            "required": needed,
            "additionalProperties": false,
        })
    }
}

/// The schema of a scenario file (without the axes and cases of an experiment), in JSON Schema
/// 2020-12.
pub fn scenario() -> Value {
    let mut all = Vec::new();
    all.extend(tables::all());
    all.extend(topology::all());
    all.extend(traffic::all());
    let mut definitions = Map::new();
    for (name, about, example) in QUANTITIES {
        let value = json!({ "type": "string", "description": about, "examples": [example] });
        definitions.insert(name.to_owned(), value);
    }
    for table in &all {
        definitions.insert(table.name.to_owned(), table.json());
    }
    let mut root = Map::new();
    root.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    root.insert("title".to_owned(), format!("Scenario of udccp, version {SCHEMA}").into());
    root.insert("$ref".to_owned(), "#/$defs/Scenario".into());
    root.insert("$defs".to_owned(), Value::Object(definitions));
    Value::Object(root)
}
