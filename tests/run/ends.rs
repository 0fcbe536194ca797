//! How a program ends, and what everybody then says.

use crate::harness::World;

#[test]
fn an_exit_code_is_the_same_in_receipt_record_list_and_status() {
    let world = World::new();
    let ran = world.loopmux(["run", "--json", "--", "sh", "-c", "echo hi; exit 3"]).exits(1);
    let data = ran.json()["data"].clone();
    let run = data["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(data["run"]["status"], "failed");
    assert_eq!(data["attempts"][0]["verdict"]["kind"], "exited");
    assert_eq!(data["attempts"][0]["verdict"]["code"], 3);
    assert_eq!(world.read(&run, "attempts/1/exit.json")["end"]["code"], 3);
    let record = world.read(&run, "state.json");
    assert_eq!((record["status"].as_str(), &record["outcome"]["end"]["code"]), (Some("failed"), &3.into()));
    let status = world.status(&run);
    assert_eq!(status["attempts"][0]["verdict"]["code"], 3);
    let list = world.loopmux(["list", "--json"]).exits(0).json();
    assert_eq!(list["data"]["runs"][0]["status"], "failed");
    assert_eq!(world.loopmux(["logs", &run]).exits(0).out, "hi\n");
}

#[test]
fn success_a_signal_and_a_program_that_is_not_there_are_told_apart() {
    let world = World::new();
    world.loopmux(["run", "--", "true"]).exits(0);
    let killed = world.loopmux(["run", "--json", "--", "sh", "-c", "kill -9 $$"]).exits(1).json();
    assert_eq!(killed["data"]["attempts"][0]["verdict"]["signal"], 9);
    let missing = world.loopmux(["run", "--", "/no/such/program"]).exits(1);
    assert!(
        missing.out.contains("/no/such/program") && missing.out.contains("No such file"),
        "{}",
        missing.out
    );
}
