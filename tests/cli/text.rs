//! What a person reads: pages that fit a terminal, and are the same whoever looks.

use crate::harness::World;
use crate::samples::{Samples, Zoo};
use loopmux::run::files::now_ms;
use loopmux::run::record::Outcome;
use loopmux::verdict::{End, Status};
use unicode_width::UnicodeWidthStr;

#[test]
fn a_listing_fits_eighty_columns_whatever_the_names() {
    let mut world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let in_a_pipe = world.loopmux(["list"]).exits(0).out;
    assert!(in_a_pipe.contains(&"x".repeat(300)), "a pipe gets every value whole");
    world.env.push(("COLUMNS".into(), "80".into()));
    let fitted = world.loopmux(["list"]).exits(0).out;
    for line in fitted.lines().filter(|l| !l.starts_with("tmux ")) {
        assert!(line.width() <= 80, "{} columns: {line}", line.width());
        assert_eq!(line.trim_end(), line);
    }
    assert_eq!(fitted.lines().count(), in_a_pipe.lines().count());
    for text in [&in_a_pipe, &fitted] {
        assert!(!text.contains('\x1b'), "no escape reaches a pipe: {text:?}");
    }
    assert!(in_a_pipe.contains("caf\u{e9} \u{1f980} \u{8a9e}\\u{1b}[31m\\n#{pid}"), "{in_a_pipe}");
}

#[test]
fn a_listing_line_by_line() {
    let mut world = World::new();
    let samples = Samples::new(&world);
    let ago = now_ms() - 7_230_000;
    for (id, name, status, end) in [
        ("20261129-160042-7f3a", Some("fix-login"), Status::Failed, End::Code(3)),
        ("20261129-160043-00ff", None, Status::Succeeded, End::Code(0)),
        ("20261129-160044-7f3a", Some("a second one of that end"), Status::Stopped, End::Signal(15)),
    ] {
        let run = samples.run(id, name, &["/bin/sh", "-c", "true"], ago);
        run.attempt(1).started().exited(end.clone(), false).emptied();
        run.end(status, Some(Outcome::Exited { end }));
    }
    world.env.push(("COLUMNS".into(), "80".into()));
    let text = world.loopmux(["list"]).exits(0).out;
    let expected = "\
ref          name                      status     agent  attempt  age    window
160044-7f3a  a second one of that end  stopped    sh     1        2h00m
00ff         -                         succeeded  sh     1        2h00m
160042-7f3a  fix-login                 failed     sh     1        2h00m
";
    assert_eq!(text, expected);
}

#[test]
fn leftovers_are_a_mark_beside_a_status() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let text = world.loopmux(["list"]).exits(0).out;
    assert!(text.contains("succeeded*"), "{text}");
    assert!(text.contains("* its program has ended, and something of it still runs"), "{text}");
    assert!(text.contains("tmux could not be asked: "), "{text}");
}

#[test]
fn a_lost_run_says_that_its_program_did_not_exit() {
    let mut world = World::new();
    world.env.push(("TZ".into(), "UTC".into()));
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let text = world.loopmux(["status", "fix-login"]).exits(0).out;
    let pid = std::process::id();
    let project = world.project().canonicalize().expect("a project");
    let why = world.status("fix-login")["run"]["why_not_removable"][0].clone();
    let date = "2026-11-29 ";
    let expected = format!(
        "\
run       20261129-160042-0004  fix-login   lost
command   sh -c 'exit 3'
directory {project}
created   {date}16:00:42, ended {date}16:03:10
attempt 1 sh    lost: its mux session was killed (lost mid-run, not a CLI exit)
  lease      free
  start      pid {pid} (started {date}16:00:42), window @3 in session $1 of tmux server {pid}
  exit       none
  hang-up    at {date}16:03:09: the session is not listed
  session    not there: server {pid} is gone
unproven  removal: {why}
next      loopmux logs 0004   ·   loopmux resume 0004   ·   loopmux delete 0004
",
        project = project.display(),
        why = why.as_str().expect("a reason")
    );
    // On the day itself the date is left out.
    let today = jiff_today();
    let expected = if today == "2026-11-29" { expected.replace(date, "") } else { expected };
    assert_eq!(text, expected);
}

fn jiff_today() -> String {
    let ran = std::process::Command::new("date").args(["-u", "+%F"]).output().expect("date");
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

#[test]
fn an_orphan_names_who_holds_its_lease_and_how_to_end_it() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let text = world.loopmux(["status", "orphan"]).exits(0).out;
    let pid = std::process::id();
    for part in [
        "   orphaned\n".to_owned(),
        "engine    gone, without an end of the run in its record\n".to_owned(),
        format!("             by pid {pid} `"),
        "refused   removal and resume: something of attempt 1 is alive\n".to_owned(),
        "loopmux stop 0010".to_owned(),
        "tmux      could not be asked: ".to_owned(),
    ] {
        assert!(text.contains(&part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn what_is_unknown_is_said_with_its_reason() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let text = world.loopmux(["status", "0014"]).exits(0).out;
    assert!(text.starts_with("run       20261129-160042-0014   unknown\n"), "{text}");
    assert!(text.contains("Not a directory"), "{text}");
    let text = world.loopmux(["status", "0013"]).exits(0).out;
    assert!(text.contains("unknown   record: ") && text.contains("written by a newer loopmux"), "{text}");
}

#[test]
fn colours_follow_the_option_and_the_variable() {
    let mut world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let coloured = |world: &World, args: &[&str]| world.loopmux(args).exits(0).out.contains('\x1b');
    assert!(coloured(&world, &["--color", "always", "list"]));
    assert!(coloured(&world, &["status", "0004", "--color", "always"]));
    assert!(!coloured(&world, &["list", "--color", "auto"]), "standard output is a pipe");
    assert!(!coloured(&world, &["list", "--color", "never"]));
    world.env.push(("NO_COLOR".into(), "1".into()));
    assert!(!coloured(&world, &["list"]));
    assert!(coloured(&world, &["list", "--color", "always"]), "the option ranks first");
}

#[test]
fn nothing_there_is_said_beside_the_answer() {
    let world = World::new();
    let ran = world.loopmux(["list"]).exits(0);
    assert_eq!(ran.out, "");
    assert!(ran.err.starts_with("no runs in the project "), "{}", ran.err);
    assert_eq!(world.loopmux(["list", "-q"]).exits(0).err, "");
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let ran = world.loopmux(["list", "--status", "paused"]).exits(0);
    assert!(ran.err.starts_with("no such runs in the project "), "{}", ran.err);
}
