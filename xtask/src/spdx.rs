//! Licence expressions: which of them the policy allows.

/// Licences that a dependency may be used under.
pub(crate) const ALLOWED: [&str; 5] =
    ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0", "Zlib"];

/// Whether an expression can be met with allowed licences alone.
///
/// # Errors
/// It is no expression, so nobody knows what it asks for.
pub(crate) fn allowed(expression: &str) -> Result<bool, String> {
    // Older packages write a slash for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = Words { words: spaced.split_whitespace().collect(), at: 0, whole: expression };
    let met = words.any()?;
    match words.peek() {
        None => Ok(met),
        Some(_) => words.wrong(),
    }
}

struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
    whole: &'a str,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.at += usize::from(found);
        found
    }

    fn wrong<T>(&self) -> Result<T, String> {
        Err(format!("{:?} is no licence expression", self.whole))
    }

    fn any(&mut self) -> Result<bool, String> {
        let mut met = self.all()?;
        while self.eat("OR") {
            met |= self.all()?;
        }
        Ok(met)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut met = self.one()?;
        while self.eat("AND") {
            met &= self.one()?;
        }
        Ok(met)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.eat("(") {
            let met = self.any()?;
            return if self.eat(")") { Ok(met) } else { self.wrong() };
        }
        let Some(name) = self.peek().filter(|w| !matches!(*w, ")" | "OR" | "AND" | "WITH")) else {
            return self.wrong();
        };
        self.at += 1;
        if !self.eat("WITH") {
            return Ok(ALLOWED.contains(&name));
        }
        let Some(exception) = self.peek() else { return self.wrong() };
        self.at += 1;
        Ok(ALLOWED.contains(&format!("{name} WITH {exception}").as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allowed_way_is_enough() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "GPL-3.0-only/MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
        ] {
            assert_eq!(allowed(good), Ok(true), "{good}");
        }
    }

    #[test]
    fn one_forbidden_part_of_all_is_too_much() {
        for bad in [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "(MIT OR Apache-2.0) AND LGPL-2.1-or-later",
            "Apache-2.0 WITH Classpath-exception-2.0",
            "GPL-2.0-only OR AGPL-3.0-only",
        ] {
            assert_eq!(allowed(bad), Ok(false), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_allowed() {
        for bad in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "OR MIT", "MIT WITH", "MIT)"] {
            assert!(allowed(bad).is_err(), "{bad}");
        }
    }
}
