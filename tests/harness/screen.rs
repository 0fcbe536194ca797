//! A terminal with a person in front of it: a window of another tmux server, in which a command runs.

use super::{Ran, World, eventually, finish};
use std::ffi::OsStr;

/// A terminal.
pub struct Screen<'w> {
    world: &'w World,
    server: String,
}

impl<'w> Screen<'w> {
    /// Runs `argv` in a new terminal of 100 by 30, with the world's surroundings and outside of any multiplexer.
    #[track_caller]
    pub fn new<S: AsRef<OsStr>>(world: &'w World, name: &str, argv: &[S]) -> Self {
        let screen = Self { world, server: world.file("tmux").join(name).display().to_string() };
        // What runs in it must not take this terminal for a window of its own server. It stays after its end.
        let before =
            ["new-session", "-d", "-x", "100", "-y", "30", "--", "env", "-u", "TMUX", "-u", "TMUX_PANE"];
        let mut command = world.bare("/usr/bin/tmux");
        command.args(["-u", "-f", "/dev/null", "-S", &screen.server]);
        command.args(["set-option", "-g", "remain-on-exit", "on", ";"]);
        command.args(before).args(argv);
        finish(command).exits(0);
        screen
    }

    fn tmux<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        let mut command = self.world.bare("/usr/bin/tmux");
        command.args(["-u", "-S", &self.server]).args(args);
        finish(command)
    }

    /// What it shows.
    #[track_caller]
    pub fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J"]).exits(0).out
    }

    /// Waits until it shows `text`, and gives the whole screen.
    #[track_caller]
    pub fn shows(&self, text: &str) -> String {
        eventually(&format!("{text:?} on the screen"), || {
            let shown = self.text();
            if shown.contains(text) { Ok(shown) } else { Err(shown) }
        })
    }

    /// Presses keys, by their names in tmux.
    #[track_caller]
    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat()).exits(0);
    }

    /// A fact about it, as a format of tmux.
    #[track_caller]
    pub fn fact(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format]).exits(0).out.trim_end().to_owned()
    }

    /// Waits for the end of the command, and gives its exit code, or the number of the signal that ended it.
    #[track_caller]
    pub fn ends(&self) -> String {
        eventually("the end of the command", || {
            let state =
                self.fact("#{pane_dead} #{pane_dead_status}#{?pane_dead_signal,signal ,}#{pane_dead_signal}");
            if state == "1" {
                // It closes the terminal with utempter's help, which loses the signal that tells of a child's end
                // (Debian's tmux 3.3a). The end of another child makes it look again.
                self.tmux(&["run-shell", "true"]);
            }
            state.strip_prefix("1 ").map(str::to_owned).ok_or_else(|| format!("{state}\n{}", self.text()))
        })
    }

    /// Closes the terminal, whatever runs in it.
    pub fn close(self) {
        self.tmux(&["kill-server"]).exits(0);
    }
}
