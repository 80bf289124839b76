//! A table of typed columns.

use std::sync::Arc;

use serde_json::Value;

/// A table; all columns have the same length.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    columns: Vec<Column>,
    rows: usize,
}

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// Values of one type; `None` for rows without a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// No row has a value yet.
    Empty(usize),
    /// Texts, shared between rows.
    Text(Vec<Option<Arc<str>>>),
    /// Whole numbers.
    Integer(Vec<Option<i64>>),
    /// Numbers.
    Real(Vec<Option<f64>>),
    /// Booleans.
    Flag(Vec<Option<bool>>),
}

/// A value to be added to a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    None,
    Text(Arc<str>),
    Integer(i64),
    Real(f64),
    Flag(bool),
}

impl From<&Value> for Cell {
    /// Lists and objects cannot be cells.
    fn from(value: &Value) -> Self {
        match value {
            Value::Null | Value::Array(_) | Value::Object(_) => Self::None,
            Value::Bool(flag) => Self::Flag(*flag),
            Value::String(text) => Self::Text(text.as_str().into()),
            Value::Number(n) => match (n.as_i64(), n.as_f64()) {
                (Some(whole), _) => Self::Integer(whole),
                (None, Some(real)) => Self::Real(real),
                (None, None) => Self::None,
            },
        }
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Empty(n) => *n,
            Self::Text(v) => v.len(),
            Self::Integer(v) => v.len(),
            Self::Real(v) => v.len(),
            Self::Flag(v) => v.len(),
        }
    }

    fn push(&mut self, cell: Cell) {
        match (&mut *self, cell) {
            (Self::Empty(n), Cell::None) => *n += 1,
            (Self::Text(v), Cell::None) => v.push(None),
            (Self::Integer(v), Cell::None) => v.push(None),
            (Self::Real(v), Cell::None) => v.push(None),
            (Self::Flag(v), Cell::None) => v.push(None),
            (Self::Text(v), Cell::Text(text)) => v.push(Some(text)),
            (Self::Text(v), Cell::Integer(n)) => v.push(Some(n.to_string().into())),
            (Self::Text(v), Cell::Real(x)) => v.push(Some(x.to_string().into())),
            (Self::Text(v), Cell::Flag(flag)) => v.push(Some(flag.to_string().into())),
            (Self::Integer(v), Cell::Integer(n)) => v.push(Some(n)),
            (Self::Real(v), Cell::Real(x)) => v.push(Some(x)),
            (Self::Real(v), Cell::Integer(n)) => v.push(Some(n as f64)),
            (Self::Flag(v), Cell::Flag(flag)) => v.push(Some(flag)),
            (_, cell) => {
                self.become_fit(&cell);
                self.push(cell);
            }
        }
    }

    /// Changes the column's type so that `cell` fits: integers become reals, everything else text.
    fn become_fit(&mut self, cell: &Cell) {
        let n = self.len();
        *self = match (&*self, cell) {
            (Self::Empty(_), Cell::Integer(_)) => Self::Integer(vec![None; n]),
            (Self::Empty(_), Cell::Real(_)) => Self::Real(vec![None; n]),
            (Self::Empty(_), Cell::Flag(_)) => Self::Flag(vec![None; n]),
            (Self::Empty(_), _) => Self::Text(vec![None; n]),
            (Self::Integer(v), Cell::Real(_)) => {
                Self::Real(v.iter().map(|n| n.map(|n| n as f64)).collect())
            }
            (other, _) => {
                Self::Text((0..n).map(|row| other.text(row).map(|t| t.as_str().into())).collect())
            }
        };
    }

    /// A row's value as text.
    pub fn text(&self, row: usize) -> Option<String> {
        match self {
            Self::Empty(_) => None,
            Self::Text(v) => v[row].as_ref().map(ToString::to_string),
            Self::Integer(v) => v[row].map(|n| n.to_string()),
            Self::Real(v) => v[row].map(|x| x.to_string()),
            Self::Flag(v) => v[row].map(|flag| flag.to_string()),
        }
    }
}

impl Frame {
    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The column with this name; a new column without values is added on the right.
    pub(super) fn column(&mut self, name: &str) -> usize {
        self.columns.iter().position(|c| c.name == name).unwrap_or_else(|| {
            self.columns.push(Column { name: name.to_owned(), values: Values::Empty(self.rows) });
            self.columns.len() - 1
        })
    }

    /// Adds a row. Columns without a given cell have no value in it.
    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = (usize, Cell)>) {
        for (column, cell) in cells {
            let column = &mut self.columns[column];
            assert_eq!(column.values.len(), self.rows, "{} has two values", column.name);
            column.values.push(cell);
        }
        self.rows += 1;
        for column in self.columns.iter_mut().filter(|c| c.values.len() < self.rows) {
            column.values.push(Cell::None);
        }
    }

    /// The table as CSV (RFC 4180) with a header. Missing values are empty fields.
    pub fn csv(&self) -> String {
        let mut out = csv::Writer::from_writer(Vec::new());
        // Writing to memory cannot fail, and all rows have the same length.
        let _ = out.write_record(self.columns.iter().map(|c| &c.name));
        for row in 0..self.rows {
            let fields = self.columns.iter().map(|c| c.values.text(row).unwrap_or_default());
            let _ = out.write_record(fields);
        }
        String::from_utf8(out.into_inner().unwrap_or_default()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(cells: &[Cell]) -> Frame {
        let mut frame = Frame::default();
        let column = frame.column("x");
        cells.iter().for_each(|c| frame.push([(column, c.clone())]));
        frame
    }

    #[test]
    fn a_column_takes_the_type_of_what_comes() {
        let whole_first = frame(&[Cell::None, Cell::Integer(1), Cell::Real(0.5)]);
        assert_eq!(whole_first.columns[0].values, Values::Real(vec![None, Some(1.0), Some(0.5)]));
        let mixed = frame(&[Cell::Integer(1), Cell::Text("a, b".into()), Cell::Flag(true)]);
        assert_eq!(mixed.csv(), "x\n1\n\"a, b\"\ntrue\n");
    }

    #[test]
    fn a_late_column_is_empty_above() {
        let mut frame = frame(&[Cell::Integer(1)]);
        let late = frame.column("y");
        frame.push([(late, Cell::Flag(true))]);
        assert_eq!(frame.csv(), "x,y\n1,\n,true\n");
    }
}
