//! Operating-system strings in JSON, byte for byte.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::fmt;

/// A string as the operating system has it. In JSON it is a string where it is valid Unicode, else
/// `{"hex": "…"}` with its bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OsText(pub OsString);

impl OsText {
    /// The string.
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    /// For a person: whatever is no Unicode is replaced.
    pub fn display(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

impl fmt::Debug for OsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Into<OsString>> From<T> for OsText {
    fn from(t: T) -> Self {
        Self(t.into())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes { hex: String },
}

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => Form::Text(text.into()).serialize(s),
            None => Form::Bytes { hex: to_hex(self.0.as_encoded_bytes()) }.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match Form::deserialize(d)? {
            Form::Text(text) => Ok(Self(OsString::from(text.into_owned()))),
            Form::Bytes { hex } => {
                let bytes = from_hex(&hex).ok_or_else(|| serde::de::Error::custom("not hex digits"))?;
                os_string(bytes).map(Self).ok_or_else(|| serde::de::Error::custom("no string of this system"))
            }
        }
    }
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt;
    Some(OsString::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}

/// What stands behind a prefix of ASCII letters; `None` where it is not there.
#[allow(unsafe_code)]
pub fn after_prefix<'t>(text: &'t OsStr, prefix: &str) -> Option<&'t OsStr> {
    debug_assert!(prefix.is_ascii());
    let rest = text.as_encoded_bytes().strip_prefix(prefix.as_bytes())?;
    // SAFETY: the bytes are those of a string of this system behind whole ASCII characters.
    Some(unsafe { OsStr::from_encoded_bytes_unchecked(rest) })
}

/// The parts before and behind the first ASCII character of that kind; `None` where there is none.
#[allow(unsafe_code)]
pub fn split_at_first(text: &OsStr, at: u8) -> Option<(&OsStr, &OsStr)> {
    debug_assert!(at.is_ascii());
    let bytes = text.as_encoded_bytes();
    let place = bytes.iter().position(|b| *b == at)?;
    // SAFETY: both are the bytes of a string of this system up to, or behind, a whole ASCII character.
    Some(unsafe {
        (
            OsStr::from_encoded_bytes_unchecked(&bytes[..place]),
            OsStr::from_encoded_bytes_unchecked(&bytes[place + 1..]),
        )
    })
}

/// Lower-case hex digits of bytes.
pub fn to_hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = hex.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|d| d.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|d| (d[0] * 16 + d[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_json() {
        let odd: &[u8] = if cfg!(unix) { b"\xff\x00\xfe" } else { b"\x00" };
        for bytes in [&b"plain"[..], "caf\u{e9} \u{1f980}\n\"'".as_bytes(), odd, b""] {
            let text = OsText(os_string(bytes.to_vec()).unwrap());
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<OsText>(&json).unwrap(), text, "{json}");
        }
        assert!(serde_json::from_str::<OsText>(r#"{"hex":"f"}"#).is_err());
        assert!(serde_json::from_str::<OsText>(r#"{"hex":"zz"}"#).is_err());
    }
}
