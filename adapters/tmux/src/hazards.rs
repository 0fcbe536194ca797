//! Options of a person's server that could end or keep windows against anybody's will.

use crate::Tmux;
use crate::argv::Verb;
use crate::snapshot::{began, begin, end, ended};
use loopmux_mux::Trouble;

/// One option that is set as it should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The option.
    pub option: &'static str,
    /// Its value.
    pub value: String,
    /// What it does.
    pub harm: &'static str,
    /// Windows of ours are made so that it does nothing to them.
    pub harmless_to_ours: bool,
}

/// What is asked for: the option, the values at which it does nothing, what it does otherwise, and whether our
/// windows are protected from it.
const OPTIONS: [(&str, &[&str], &str, bool); 3] = [
    (
        "exit-unattached",
        &["", "0", "off"],
        "the server ends, with every session, when no terminal is attached to it",
        false,
    ),
    ("destroy-unattached", &["", "0", "off"], "sessions end when no terminal is attached to them", true),
    ("remain-on-exit", &["", "0", "off"], "windows stay after their program has ended", true),
];

impl Tmux {
    /// *Observation.* Which options of the server that answers are hazards. One execution of the client.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn hazards(&self) -> Result<Vec<Hazard>, Trouble> {
        let script = OPTIONS.iter().fold(begin(), |script, (option, ..)| {
            script.then(Verb::Display, ["-p".to_owned(), format!("{option}\t#{{{option}}}")])
        });
        let heard = self.ask(Verb::Display, &self.client(&script.and(end())))?;
        match answer(&heard.stdout) {
            Some(hazards) => Ok(hazards),
            None => Err(self.trouble(Verb::Display, &heard)),
        }
    }
}

/// What a complete answer says; `None` for any other.
fn answer(text: &str) -> Option<Vec<Hazard>> {
    let mut lines = text.lines();
    let (pid, _) = began(lines.next()?)?;
    let mut hazards = Vec::new();
    for (option, harmless, harm, harmless_to_ours) in OPTIONS {
        let value = lines.next()?.strip_prefix(option)?.strip_prefix('\t')?;
        if !harmless.contains(&value) {
            hazards.push(Hazard { option, value: value.to_owned(), harm, harmless_to_ours });
        }
    }
    ended(lines.next()?, pid).then_some(hazards)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(exit: &str, destroy: &str, remain: &str, end: u32) -> String {
        format!(
            "loopmux-begin\t7\t3.3a\nexit-unattached\t{exit}\ndestroy-unattached\t{destroy}\nremain-on-exit\t{remain}\nloopmux-end\t{end}\n"
        )
    }

    #[test]
    fn what_is_set_is_found_and_what_is_off_is_not() {
        assert_eq!(answer(&said("0", "off", "off", 7)), Some(Vec::new()));
        let found = answer(&said("1", "keep-last", "on", 7)).unwrap();
        let options: Vec<_> = found.iter().map(|h| (h.option, h.value.as_str())).collect();
        assert_eq!(
            options,
            [("exit-unattached", "1"), ("destroy-unattached", "keep-last"), ("remain-on-exit", "on")]
        );
    }

    #[test]
    fn an_answer_that_is_not_whole_is_none() {
        assert_eq!(answer(""), None);
        assert_eq!(answer(&said("1", "0", "off", 8)), None, "another server ended it");
        let whole = said("1", "0", "off", 7);
        assert_eq!(answer(&whole[..whole.len() / 2]), None);
    }
}
