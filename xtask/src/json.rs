//! Just enough JSON to read what `cargo metadata` and `loopmux --json` print.

use std::collections::BTreeMap;

/// A value. Numbers keep their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// Reads one document.
    pub(crate) fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
        let value = reader.value()?;
        reader.space();
        if reader.at < reader.bytes.len() { reader.wrong("the end") } else { Ok(value) }
    }

    /// The value over several lines, keys in order.
    pub(crate) fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(0, &mut out);
        out
    }

    fn write(&self, depth: usize, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(text) => out.push_str(text),
            Json::Text(text) => write_text(text, out),
            Json::List(items) => {
                write_all(('[', ']'), depth, out, items, |item, out| item.write(depth + 1, out))
            }
            Json::Object(map) => write_all(('{', '}'), depth, out, map, |(key, value), out| {
                write_text(key, out);
                out.push_str(": ");
                value.write(depth + 1, out);
            }),
        }
    }

    /// What is at a path of keys and list positions, if anything is.
    pub(crate) fn at<'a>(&'a self, path: &str) -> Option<&'a Json> {
        path.split('.').try_fold(self, |value, step| match value {
            Json::Object(map) => map.get(step),
            Json::List(list) => list.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The text at a path.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        match self.at(path) {
            Some(Json::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The list at a path; empty where there is none.
    pub(crate) fn list(&self, path: &str) -> &[Json] {
        match self.at(path) {
            Some(Json::List(list)) => list,
            _ => &[],
        }
    }
}

fn write_all<T>(
    (open, close): (char, char),
    depth: usize,
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    write: impl Fn(T, &mut String),
) {
    out.push(open);
    let mut some = false;
    for item in items {
        out.push_str(if some { ",\n" } else { "\n" });
        out.push_str(&"  ".repeat(depth + 1));
        write(item, out);
        some = true;
    }
    if some {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    }
    out.push(close);
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, String> {
        Err(format!("expected {expected} at byte {} of the JSON text", self.at))
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.bytes[self.at..].starts_with(token.as_bytes());
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn value(&mut self) -> Result<Json, String> {
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
        {
            if self.eat(word) {
                return Ok(value);
            }
        }
        match self.bytes.get(self.at) {
            Some(b'"') => self.string().map(Json::Text),
            Some(b'[') => self.list(),
            Some(b'{') => self.object(),
            Some(b'-' | b'0'..=b'9') => Ok(Json::Number(self.number())),
            _ => self.wrong("a value"),
        }
    }

    fn list(&mut self) -> Result<Json, String> {
        let mut items = Vec::new();
        self.at += 1;
        if self.eat("]") {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value()?);
            if self.eat("]") {
                return Ok(Json::List(items));
            }
            if !self.eat(",") {
                return self.wrong(", or ]");
            }
        }
    }

    fn object(&mut self) -> Result<Json, String> {
        let mut map = BTreeMap::new();
        self.at += 1;
        if self.eat("}") {
            return Ok(Json::Object(map));
        }
        loop {
            self.space();
            let key = self.string()?;
            if !self.eat(":") {
                return self.wrong(":");
            }
            map.insert(key, self.value()?);
            if self.eat("}") {
                return Ok(Json::Object(map));
            }
            if !self.eat(",") {
                return self.wrong(", or }");
            }
        }
    }

    fn number(&mut self) -> String {
        let start = self.at;
        let part = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
        while self.bytes.get(self.at).is_some_and(part) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned()
    }

    fn string(&mut self) -> Result<String, String> {
        if !self.eat("\"") {
            return self.wrong("a string");
        }
        let mut out = Vec::new();
        loop {
            let Some(&byte) = self.bytes.get(self.at) else { return self.wrong("the end of a string") };
            self.at += 1;
            match byte {
                b'"' => return String::from_utf8(out).map_err(|e| e.to_string()),
                b'\\' => {
                    let c = self.escaped()?;
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                byte => out.push(byte),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, String> {
        let Some(&byte) = self.bytes.get(self.at) else { return self.wrong("an escape") };
        self.at += 1;
        Ok(match byte {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let high = self.hex()?;
                if (0xd800..0xdc00).contains(&high) && self.bytes[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    let low = self.hex()?;
                    let code = 0x10000 + ((high - 0xd800) << 10) + low.wrapping_sub(0xdc00);
                    return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            byte => char::from(byte),
        })
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.bytes.get(self.at..self.at + 4).and_then(|d| std::str::from_utf8(d).ok());
        let Some(code) = digits.and_then(|d| u32::from_str_radix(d, 16).ok()) else {
            return self.wrong("four hex digits");
        };
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_path() {
        let json =
            Json::parse(r#" {"a":[{"b":"x"},{"b":null}],"n":-1.5e3,"t":true,"e":[],"o":{}} "#).unwrap();
        assert_eq!(json.text("a.0.b"), Some("x"));
        assert_eq!(json.at("a.1.b"), Some(&Json::Null));
        assert_eq!(json.at("a.2.b"), None);
        assert_eq!(json.at("n"), Some(&Json::Number("-1.5e3".into())));
        assert_eq!(json.at("t"), Some(&Json::Bool(true)));
        assert_eq!((json.list("a").len(), json.list("e").len(), json.list("none").len()), (2, 0, 0));
    }

    #[test]
    fn escapes_are_read() {
        let json = Json::parse(r#""a\"\\\/\n\u00e9\ud83d\ude00é""#).unwrap();
        assert_eq!(json, Json::Text("a\"\\/\né😀é".into()));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = r#"{"a": [1, "x\"\\\n\u0007é", {}], "b": {"c": null, "d": [true]}, "e": []}"#;
        let json = Json::parse(text).unwrap();
        assert_eq!(Json::parse(&json.pretty()), Ok(json.clone()));
        assert!(json.pretty().starts_with("{\n  \"a\": [\n    1,\n"), "{}", json.pretty());
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for bad in ["", "{", "[1", "[1 2]", "{\"a\"}", "{a:1}", "\"a", "1 2", "nul", r#""\u12""#] {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
    }
}
