//! A person's configuration must not change what becomes of our windows.

mod common;

use common::*;
use loopmux_mux::*;
use std::ffi::OsString;

/// A window's whole life: a session, a second window in it whose program tries to rename it, reads a key and ends.
fn live(lab: &Lab) {
    let tmux = &lab.tmux;
    let first = tmux.create(&session(lab, "one", 1, &["sleep", "600"])).unwrap();
    assert!(first.tagged, "the first window is not tagged");

    let mut spec = session(
        lab,
        "unused",
        2,
        &["/bin/sh", "-c", "printf '\\033krenamed\\033\\\\'; echo ran; read x; exit 3"],
    );
    spec.placement = Placement::InSession(lab.answered().owned(&tags(1), TagScope::Session).remove(0));
    let second = tmux.create(&spec).unwrap();
    assert!(second.tagged, "the second window is not tagged");
    assert_ne!(first.window, second.window);

    until("the program's output", || tmux.capture(&second.pane).ok().filter(|text| text.contains("ran")));
    let seen = lab.answered();
    for (made, n) in [(&first, 1), (&second, 2)] {
        let row = seen.pane(&made.pane).unwrap();
        assert_eq!(row.session_tags.as_ref(), Some(&tags(1)));
        assert_eq!(row.window_tags.as_ref(), Some(&tags(n)));
        assert_eq!(row.pane_tags.as_ref(), Some(&tags(n)));
        assert_eq!(row.session_name, "one");
        assert!(["agent", "hooked"].contains(&&*row.window_name), "{}", row.window_name);
        assert!(!row.dead);
    }
    assert_eq!(seen.owned(&tags(2), TagScope::Pane).len(), 1);
    let has = tmux.has_session(&name("one"));
    assert_eq!(has, HasSession::Present { server_pid: first.server_pid });

    let sink = ["/bin/sh", "-c", "cat > \"$1\"", "sh"].map(OsString::from);
    let log = lab.path("log");
    let sink = [&sink[..], &[log.clone().into()]].concat();
    tmux.pipe(second.server_pid, &second.pane, Some(&sink)).unwrap();
    let pane = seen.owned(&tags(2), TagScope::Pane).remove(0);
    assert_eq!(tmux.paste(&pane, b"pasted"), Delivery::Delivered);
    until("the echo", || read(&log).filter(|log| log.ends_with(b"pasted")));
    assert_eq!(tmux.submit(&pane), Delivery::Delivered);
    // Not kept after its end.
    until("the pane's end", || lab.answered().pane(&second.pane).is_none().then_some(()));

    let owned = lab.answered().owned(&tags(1), TagScope::Session).remove(0);
    tmux.create(&session(lab, "another", 3, &["sleep", "600"])).unwrap();
    assert_eq!(tmux.kill(&owned, KillScope::Session), KillReply::Done);
    assert!(!lab.answered().has_session(&first.session));
}

macro_rules! configs {
    ($($name:ident: $config:expr;)*) => {
        $(#[test]
        fn $name() {
            live(&Lab::with_config($config));
        })*
    };
}

configs! {
    nothing_configured: "";
    remain_on_exit: "set -g remain-on-exit on";
    remain_on_exit_for_failures: "set -g remain-on-exit failed";
    destroy_unattached: "set -g destroy-unattached on";
    automatic_rename: "set -g automatic-rename on\nset -g automatic-rename-format 'x#{pane_current_command}'";
    allow_rename: "set -g allow-rename on";
    default_command_false: "set -g default-command false";
    default_shell_false: "set -g default-shell /bin/false";
    base_index: "set -g base-index 7\nset -g pane-base-index 3";
    renumber_windows: "set -g renumber-windows on";
    status_off: "set -g status off";
    update_environment: "set -g update-environment 'HOME TMUX TMUX_PANE LOOPMUX_TOKEN'";
    synchronize_panes: "set -g synchronize-panes on";
    strange_keys: "set -g prefix C-m\nbind -n Enter kill-session\nset -g mode-keys vi";
    strange_words: "set -g word-separators ''\nset -g default-terminal dumb\nset -g escape-time 9999";
    borders_and_status: "set -g pane-border-status top\nset -g status 5\nset -g set-titles on";
    a_broken_config: "this is not a command\nset -g no-such-option on\nset -g remain-on-exit on\n}";
    a_config_with_an_unclosed_brace: "if-shell true {\n  set -g remain-on-exit on\n";
    a_slow_config: "run-shell 'sleep 1'";
    a_config_that_ends_the_server_when_empty: "set -g exit-empty on\nset -g detach-on-destroy off";
    a_global_token: &format!("set -g @loopmux_s_token {0}\nset -gw @loopmux_w_token {0}", tags(9).token);
    our_own_tokens_globally: &[1, 2].map(|n| {
        ["s", "w", "p"].map(|s| format!("set -g @loopmux_{s}_run {}\n", tags(n).run)).concat()
    }).concat();
    a_hook_that_waits: "set-hook -g after-new-session 'run-shell \"sleep 0.3\"'\n\
                        set-hook -g after-new-window 'run-shell \"sleep 0.3\"'";
    a_hook_that_splits: "set-hook -g after-new-session 'split-window \"sleep 600\"'\n\
                         set-hook -g after-new-window 'split-window -b \"sleep 600\"'";
    a_hook_that_opens_a_window: "set-hook -g after-new-session 'new-window -d \"sleep 600\"'\n\
                                 set-hook -g after-new-window 'select-window -n'";
    a_hook_that_renames: "set-hook -g after-new-window 'rename-window hooked'\n\
                          set-hook -g window-linked 'display-message x'";
    every_command_is_an_alias: &ALIASES.map(|c| format!("set -sa command-alias '{c}=kill-server'\n")).concat();
}

#[test]
fn protective_settings_are_the_windows_own() {
    let on = ["remain-on-exit", "automatic-rename", "allow-rename", "synchronize-panes"];
    let set = |how: &str| on.map(|option| format!("set -w{how} {option} on")).join(" ; ");
    let lab = Lab::with_config(&format!(
        "{}\nset -g destroy-unattached on\nset-hook -g after-new-session '{1}'\nset-hook -g after-new-window '{1}'",
        set("g"),
        set("")
    ));
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    let own = |flags: &[&str], id: &str, option: &str| {
        let out = lab.by_hand(&[&["show-options"], flags, &["-qv", "-t", id, option]].concat());
        String::from_utf8(out.stdout).unwrap()
    };
    for option in on {
        assert_eq!(own(&["-w"], made.window.as_str(), option), "off\n", "{option}");
    }
    assert_eq!(own(&[], made.session.as_str(), "destroy-unattached"), "off\n");
}

/// Full names that a person's alias can take over.
const ALIASES: [&str; 20] = [
    "attach-session",
    "capture-pane",
    "copy-mode",
    "delete-buffer",
    "display-message",
    "has-session",
    "if-shell",
    "kill-pane",
    "kill-session",
    "kill-window",
    "list-panes",
    "list-sessions",
    "load-buffer",
    "new-session",
    "new-window",
    "paste-buffer",
    "pipe-pane",
    "send-keys",
    "set-option",
    "switch-client",
];
