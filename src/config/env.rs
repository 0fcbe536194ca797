//! The environment as a value.

use super::ConfigError;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// A set of environment variables. An empty value counts as not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<OsString, OsString>);

impl Env {
    /// The environment of this process, as it is now.
    pub fn of_this_process() -> Self {
        std::env::vars_os().collect()
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The same as text.
    ///
    /// # Errors
    /// The value is not UTF-8.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, ConfigError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.to_str() {
            Some(text) => Ok(Some(text)),
            None => Err(bad(name, value, "it is not UTF-8")),
        }
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// The error for a variable's value.
pub(super) fn bad(name: &'static str, value: &OsStr, why: impl Into<String>) -> ConfigError {
    ConfigError::Environment { name, value: value.to_string_lossy().into_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_is_not_set() {
        let env: Env = [("LOOPMUX_MUX", ""), ("HOME", "/h")].into_iter().collect();
        assert_eq!(env.get("LOOPMUX_MUX"), None);
        assert_eq!(env.get("HOME"), Some(OsStr::new("/h")));
        assert_eq!(env.get("NOT_THERE"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_no_text_is_an_error_and_not_absent() {
        use std::os::unix::ffi::OsStringExt;
        let env: Env = [("LOOPMUX_MUX", OsString::from_vec(vec![b't', 0xff]))].into_iter().collect();
        let error = env.text("LOOPMUX_MUX").unwrap_err().to_string();
        assert!(error.contains("LOOPMUX_MUX") && error.contains("not UTF-8"), "{error}");
    }
}
