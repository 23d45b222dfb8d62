//! Version, name, end and checksum: how contents become the bytes of a file, and back.

use crate::table::{Shape, kind};
use base::crc::crc32c;
use base::{Bug, planted};
use finding::FileFault;
use serde::de::{DeserializeOwned, Error, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The version of the format. Later programs add fields; another version is not read.
pub const VERSION: u64 = 1;

/// What stands before and behind the eight digits at the end of a file. The checksum covers all bytes before it.
const END_TOML: [&str; 2] = ["[end]\ncrc32c = \"", "\"\n"];
const END_JSON: [&str; 2] = ["  \"end\": {\n    \"crc32c\": \"", "\"\n  }\n}\n"];
const DIGITS: usize = 8;

/// A row of a file.
#[derive(Clone, PartialEq, Debug)]
pub enum Row<T> {
    /// This program knows all of its fields.
    Known(T),
    /// It grants nothing, and stays as it is.
    Unknown(UnknownRow),
}

/// A row with a field that this program does not know.
#[derive(Clone, PartialEq, Debug)]
pub struct UnknownRow {
    /// The field.
    pub field: String,
    /// All fields.
    pub row: toml::Table,
}

impl UnknownRow {
    /// The text of a field.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.row.get(field)?.as_str()
    }

    /// The texts of a field that is a list.
    pub fn texts(&self, field: &str) -> Vec<&str> {
        self.row
            .get(field)
            .and_then(|v| v.as_array())
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str())
            .collect()
    }
}

/// Known fields, and the names of others.
#[derive(Deserialize)]
struct Fields<T> {
    #[serde(flatten)]
    known: T,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

impl<T: Serialize> Serialize for Row<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Row::Known(row) => row.serialize(to),
            Row::Unknown(UnknownRow { row, .. }) => row.serialize(to),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Row<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let row = toml::Table::deserialize(from)?;
        let Fields { known, others } = row.clone().try_into::<Fields<T>>().map_err(D::Error::custom)?;
        Ok(match others.into_keys().next() {
            None => Row::Known(known),
            Some(field) => Row::Unknown(UnknownRow { field, row }),
        })
    }
}

fn shape(name: &str) -> Shape {
    kind(name).map(|k| k.shape).filter(|s| s.is_sealed()).expect("the name of a sealed file")
}

fn end(shape: Shape) -> [&'static str; 2] {
    if shape == Shape::Json { END_JSON } else { END_TOML }
}

fn with_end(shape: Shape, mut text: String) -> Vec<u8> {
    let [before, behind] = end(shape);
    let sum = crc32c(text.as_bytes());
    text += &format!("{before}{sum:08x}{behind}");
    text.into_bytes()
}

/// The bytes of the file `name` with this content.
pub fn seal<T: Serialize>(name: &str, content: &T) -> Vec<u8> {
    let shape = shape(name);
    let text = if shape == Shape::Json {
        let body = serde_json::to_string_pretty(content).expect("plain data");
        let fields = body.strip_prefix("{\n").and_then(|b| b.strip_suffix("\n}"));
        let fields = fields.map_or(String::new(), |fields| format!("{fields},\n"));
        format!("{{\n  \"version\": {VERSION},\n  \"file\": {},\n{fields}", Value::from(name))
    } else {
        let title = kind(name).expect("seen above").title;
        let body = toml::to_string(content).expect("plain data");
        format!("# {title}\nversion = {VERSION}\nfile = \"{name}\"\n{body}\n")
    };
    with_end(shape, text)
}

/// The text of a file that is whole.
///
/// # Errors
/// It is not.
pub fn check<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, FileFault> {
    if bytes.is_empty() {
        return Err(FileFault::Empty);
    }
    let text = core::str::from_utf8(bytes).map_err(|_| FileFault::NotText)?;
    let [before, behind] = end(shape(name));
    let digits_of = |text: &'a str| {
        let rest = text.strip_suffix(behind)?;
        let at = rest.len().checked_sub(DIGITS).filter(|at| rest.is_char_boundary(*at))?;
        let (rest, digits) = rest.split_at(at);
        Some((rest.strip_suffix(before)?, digits))
    };
    let fault = match digits_of(text) {
        Some((rest, digits)) if digits == format!("{:08x}", crc32c(rest.as_bytes())) => return Ok(text),
        Some(_) => FileFault::Checksum,
        None => FileFault::NoEnd,
    };
    if !planted(Bug::CutFileBelieved) {
        return Err(fault);
    }
    Ok(text)
}

/// What the file `name` holds.
///
/// # Errors
/// It is not whole, is not that file, or has something that this program does not know.
pub fn open<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, FileFault> {
    content(name, check(name, bytes)?)
}

fn content<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, FileFault> {
    let read = match said(name, text)? {
        Said::Json(all) => serde_json::from_value::<Fields<T>>(Value::Object(all)).map_err(syntax)?,
        Said::Toml(all) => all.try_into::<Fields<T>>().map_err(syntax)?,
    };
    match read.others.into_keys().next() {
        None => Ok(read.known),
        Some(field) => Err(FileFault::FieldUnknown { field }),
    }
}

/// All fields of a file but for its version, its name and its end.
enum Said {
    Json(Map<String, Value>),
    Toml(toml::Table),
}

fn said(name: &str, text: &str) -> Result<Said, FileFault> {
    if shape(name) == Shape::Json {
        let mut all: Map<String, Value> = serde_json::from_str(text).map_err(syntax)?;
        let version = all.remove("version").and_then(|v| v.as_u64());
        is_this(name, version, all.remove("file").as_ref().and_then(Value::as_str))?;
        all.remove("end");
        return Ok(Said::Json(all));
    }
    let mut all: toml::Table = toml::from_str(text).map_err(syntax)?;
    let version = all.remove("version").and_then(|v| v.as_integer());
    let version = version.and_then(|v| u64::try_from(v).ok());
    is_this(name, version, all.remove("file").as_ref().and_then(|v| v.as_str()))?;
    all.remove("end");
    Ok(Said::Toml(all))
}

fn syntax(error: impl core::fmt::Display) -> FileFault {
    // Of several lines, the first says what is wrong.
    let error = error.to_string().trim().replace('\n', " ");
    FileFault::Syntax { error }
}

fn is_this(name: &str, version: Option<u64>, file: Option<&str>) -> Result<(), FileFault> {
    let missing = |field: &str| FileFault::FieldMissing { field: field.into() };
    let version = version.ok_or_else(|| missing("version"))?;
    if version != VERSION {
        return Err(FileFault::Version { version });
    }
    let file = file.ok_or_else(|| missing("file"))?;
    if file == name { Ok(()) } else { Err(FileFault::OtherFile { name: file.into() }) }
}

/// TOML without its end. What somebody wrote behind the end stays.
fn without_end(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if let Some(at) = lines.iter().rposition(|line| line.trim() == "[end]") {
        let is_sum = lines.get(at + 1).is_some_and(|line| line.trim_start().starts_with("crc32c"));
        lines.drain(at..=at + usize::from(is_sum));
    }
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

/// The bytes of a file as an operator edited it, with an end that fits. What it says stays as it is.
///
/// # Errors
/// It is not that file, or cannot be read.
pub fn sign(name: &str, bytes: &[u8]) -> Result<Vec<u8>, FileFault> {
    if bytes.is_empty() {
        return Err(FileFault::Empty);
    }
    let text = core::str::from_utf8(bytes).map_err(|_| FileFault::NotText)?;
    if shape(name) == Shape::Json {
        let Said::Json(all) = said(name, text)? else { unreachable!("it is JSON") };
        return Ok(seal(name, &all));
    }
    let text = without_end(text);
    // What its fields mean is checked by who knows them.
    said(name, &text)?;
    Ok(with_end(Shape::Toml, text))
}
