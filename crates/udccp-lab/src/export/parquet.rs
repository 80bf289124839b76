//! A table as one Parquet file: one row group, compressed columns.

use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError as Failure;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::Type;

use udccp_scenario::VERSION;

use super::frame::{Column, Frame, Values};

/// Why a table cannot be written as Parquet.
#[derive(Debug, thiserror::Error)]
#[error("cannot write a Parquet file: {0}")]
pub struct ParquetError(#[from] Failure);

impl Frame {
    /// The table as a Parquet file. Every column is optional: text, 64-bit integer, double or
    /// boolean.
    ///
    /// # Errors
    /// An error of the Parquet library.
    pub fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let fields: Result<Vec<_>, Failure> =
            self.columns().iter().map(|c| field(c).map(Arc::new)).collect();
        let schema = Type::group_type_builder("udccp").with_fields(fields?).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("udccp {VERSION}"))
            .build();
        let mut out = Vec::new();
        let mut file = SerializedFileWriter::new(&mut out, Arc::new(schema), Arc::new(properties))?;
        let mut rows = file.next_row_group()?;
        for column in self.columns() {
            if let Some(mut writer) = rows.next_column()? {
                write(&mut writer, &column.values)?;
                writer.close()?;
            }
        }
        rows.close()?;
        file.close()?;
        Ok(out)
    }
}

fn field(column: &Column) -> Result<Type, Failure> {
    let (physical, logical) = match column.values {
        Values::Text(_) | Values::Empty(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Integer(_) => (Physical::INT64, None),
        Values::Real(_) => (Physical::DOUBLE, None),
        Values::Flag(_) => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

fn write(writer: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<(), Failure> {
    match values {
        Values::Empty(n) => put::<ByteArrayType, ByteArray>(writer, &vec![None; *n], Clone::clone),
        Values::Text(v) => put::<ByteArrayType, _>(writer, v, |t| ByteArray::from(&**t)),
        Values::Integer(v) => put::<Int64Type, _>(writer, v, |n| *n),
        Values::Real(v) => put::<DoubleType, _>(writer, v, |x| *x),
        Values::Flag(v) => put::<BoolType, _>(writer, v, |flag| *flag),
    }
}

/// Writes a column: the existing values, and for every row whether it has one.
fn put<D: DataType, T>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[Option<T>],
    convert: impl Fn(&T) -> D::T,
) -> Result<(), Failure> {
    let there: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let values: Vec<D::T> = values.iter().flatten().map(convert).collect();
    writer.typed::<D>().write_batch(&values, Some(&there), None)?;
    Ok(())
}
