//! What a window printed, as text, as bytes, as objects, and as it comes.

use crate::harness::{HANG, World, finish_child};
use crate::samples::{Samples, THEN};
use loopmux::run::record::{Change, Outcome};
use loopmux::verdict::{End, Status};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};

const BYTES: &[u8] = b"\x1b[1mbold\x1b[0m\r\n10%\r20%\r100%\r\n\x1b]0;title\x07caf\xc3\xa9\r\nlast";

fn over(world: &World) {
    Samples::new(world).over("20261129-160042-7f3a", None, Status::Succeeded, |a| {
        a.started().exited(End::Code(0), false).emptied().wrote(BYTES);
        Some(Outcome::Exited { end: End::Code(0) })
    });
}

#[test]
fn text_is_plain_and_raw_is_every_byte() {
    let world = World::new();
    over(&world);
    let plain = "bold\n100%\ncaf\u{e9}\nlast\n";
    assert_eq!(world.loopmux(["logs", "7f3a"]).exits(0).out, plain);
    assert_eq!(world.loopmux(["logs", "7f3a", "--attempt", "1"]).exits(0).out, plain);
    let raw = world.loopmux(["logs", "7f3a", "--raw"]).exits(0).out;
    assert_eq!(raw.as_bytes(), BYTES);
    let object = world.loopmux(["logs", "7f3a", "--json"]).exits(0).json();
    assert_eq!(object["data"]["text"], json!(plain));
    assert_eq!((&object["data"]["complete"], &object["data"]["dropped"]), (&json!(true), &json!(0)));
}

#[test]
fn following_what_is_over_ends_at_once() {
    let world = World::new();
    over(&world);
    assert_eq!(world.loopmux(["logs", "-f", "7f3a"]).exits(0).out, "bold\n100%\ncaf\u{e9}\nlast\n");
    let ran = world.loopmux(["logs", "-f", "--json", "7f3a"]).exits(0);
    let lines: Vec<serde_json::Value> =
        ran.out.lines().map(|l| serde_json::from_str(l).expect("an object a line")).collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[1]["data"]["text"], json!("100%"));
    assert_eq!(lines[4]["data"]["run"]["status"], json!("succeeded"), "the last one carries the run");
}

#[test]
fn an_attempt_without_a_log_prints_nothing_and_says_so() {
    let world = World::new();
    Samples::new(&world).over("20261129-160042-7f3a", None, Status::Failed, |a| {
        a.refused("no");
        Some(Outcome::NeverStarted { why: "no".to_owned() })
    });
    let ran = world.loopmux(["logs", "7f3a"]).exits(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", "nothing was recorded of this attempt\n"));
}

#[test]
fn following_prints_what_comes_and_ends_with_the_run() {
    let world = World::new();
    let samples = Samples::new(&world);
    let run = samples.run("20261129-160042-7f3a", None, &["sh"], THEN);
    let attempt = run.attempt(1);
    attempt.started_by(&loopmux::process::current(), &loopmux::process::current(), loopmux::process::host());
    let lease = attempt.hold();
    run.change(Change::Started);
    attempt.wrote(b"first\r\n");
    let mut child = world.start(["logs", "-f", "7f3a"]);
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "first\n");
    let log = attempt.dir.path().join("output.log");
    let mut log = std::fs::OpenOptions::new().append(true).open(log).expect("the log");
    log.write_all(b"\x1b[32mno end yet").expect("a write");
    let mut part = [0; 10];
    out.read_exact(&mut part).expect("an unfinished line is shown");
    assert_eq!(&part, b"no end yet");
    log.write_all(b", now\r\nlast\r\n").expect("a write");
    attempt.exited(End::Code(0), false).emptied();
    run.end(Status::Succeeded, Some(Outcome::Exited { end: End::Code(0) }));
    drop(lease);
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("the rest");
    assert_eq!(rest, ", now\nlast\n");
    finish_child(child).exits(0);
}

#[test]
fn a_reader_that_goes_away_ends_the_following() {
    let world = World::new();
    let samples = Samples::new(&world);
    let run = samples.run("20261129-160042-7f3a", None, &["sh"], THEN);
    let attempt = run.attempt(1);
    attempt.started_by(&loopmux::process::current(), &loopmux::process::current(), loopmux::process::host());
    let _lease = attempt.hold();
    run.change(Change::Started);
    attempt.wrote(b"first\r\n");
    let mut child = world.start(["logs", "-f", "7f3a"]);
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    drop(out);
    let ran = finish_child(child).exits(0);
    assert_eq!(ran.err, "");
}

#[test]
fn following_a_real_run_prints_all_of_it() {
    let world = World::new();
    let gate = world.file("gate");
    let script = format!(
        "i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; until [ -e '{0}' ]; do sleep 0.05; done; printf end",
        gate.display()
    );
    let id = world.detach(["sh", "-c", &script]);
    let mut child = world.start(["logs", "-f", &id]);
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let began = std::time::Instant::now();
    for i in 0..500 {
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        assert_eq!(line, format!("line {i}\n"));
    }
    std::fs::write(&gate, "").expect("the gate");
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("the rest");
    assert_eq!(rest, "end\n");
    assert!(began.elapsed() < HANG);
    finish_child(child).exits(0);
    let whole = world.loopmux(["logs", &id]).exits(0).out;
    assert_eq!(whole.lines().count(), 501);
}
