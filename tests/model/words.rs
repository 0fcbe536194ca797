//! A way through the model in words.

use crate::explore::Explored;
use crate::model::{Label, Model, Who};
use crate::state::{Command, State};

/// The steps to a state, one a line.
pub(crate) fn tell(model: &Model, found: &Explored<State>, at: usize) -> String {
    let path = found.path(model, at);
    let begun = found.beginning(at);
    let mut text = format!("it begins with {}\n", beginning(&found.states[begun]));
    for (n, (label, after)) in path.iter().enumerate() {
        text += &format!("{:3}. {}\n", n + 1, step(label, after));
    }
    text
}

fn beginning(s: &State) -> String {
    let a = &s.attempts[0];
    format!(
        "engine {:?}, keeper {:?}, program {:?}, left {:?}, start {}, exit {:?}, cancelled {}, window {}",
        s.engine.at, s.keepers[0].at, a.cli, a.left, a.start, a.exit, a.cancelled, a.window
    )
}

fn step(label: &Label, after: &State) -> String {
    let who = match label.who {
        Who::Engine => "the engine".to_owned(),
        Who::Keeper(2) => "a second keeper".to_owned(),
        Who::Keeper(_) => "the keeper".to_owned(),
        Who::Program(_) => "the program".to_owned(),
        Who::Mutator(i) => {
            let which = if i == 0 { "first" } else { "second" };
            format!("{} (the {which} command)", command(after.mutators[usize::from(i)].command))
        }
        Who::Observer => "an observer".to_owned(),
        Who::Mux => "the multiplexer".to_owned(),
        Who::World => "the world".to_owned(),
    };
    let of = if label.of == 0 { String::new() } else { format!(" of attempt {}", label.of) };
    format!("{who} {}{of}", label.what)
}

fn command(command: Command) -> &'static str {
    match command {
        Command::Nothing => "nobody",
        Command::Stop => "stop",
        Command::Delete => "delete",
        Command::Force => "delete --force",
        Command::Unproven => "delete --unproven",
        Command::Archive => "archive",
        Command::Restore => "restore",
        Command::EraseQuarantined => "clean --quarantine",
        Command::Cleanup => "cleanup",
        Command::Resume => "resume",
    }
}
