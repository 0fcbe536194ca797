//! How a person names a run.

use crate::harness::World;
use crate::samples::{Samples, THEN};
use loopmux::verdict::Status;
use serde_json::json;

fn make(samples: &Samples, id: &str, name: Option<&str>) {
    samples.run(id, name, &["true"], THEN).end(Status::Stopped, None);
}

#[test]
fn an_id_comes_before_a_name_and_a_name_before_a_part() {
    let world = World::new();
    let samples = Samples::new(&world);
    make(&samples, "20261129-160042-7f3a", Some("one"));
    make(&samples, "20261130-160042-00ff", Some("20261129-160042-7f3a"));
    make(&samples, "20261201-160042-1234", Some("7f3a"));
    make(&samples, "20261202-160042-5678", Some("caf\u{e9} :#{pid}"));
    for (reference, id) in [
        ("20261129-160042-7f3a", "20261129-160042-7f3a"),
        ("one", "20261129-160042-7f3a"),
        ("7f3a", "20261201-160042-1234"),
        ("00ff", "20261130-160042-00ff"),
        ("20261130", "20261130-160042-00ff"),
        ("caf\u{e9} :#{pid}", "20261202-160042-5678"),
        ("@last", "20261202-160042-5678"),
    ] {
        let object = world.loopmux(["status", "--json", reference]).exits(0).json();
        assert_eq!(object["data"]["run"]["id"], json!(id), "{reference}");
    }
    let object = world.loopmux(["status", "--json"]).exits(0).json();
    assert_eq!(object["data"]["run"]["id"], json!("20261202-160042-5678"), "without one it is the newest");
}

#[test]
fn the_short_reference_of_a_listing_means_that_run() {
    let world = World::new();
    let samples = Samples::new(&world);
    for id in ["20261129-160042-7f3a", "20261130-100000-7f3a", "20261130-100001-2026", "20261201-160042-00ff"]
    {
        make(&samples, id, None);
    }
    make(&samples, "20261202-170042-5678", Some("00ff"));
    let object = world.loopmux(["list", "--json"]).exits(0).json();
    let runs = object["data"]["runs"].as_array().expect("runs").clone();
    assert_eq!(runs.len(), 5);
    for run in runs {
        let short = run["ref"].as_str().expect("a reference");
        let object = world.loopmux(["status", "--json", short]).exits(0).json();
        assert_eq!(object["data"]["run"]["id"], run["id"], "{short}");
        assert!(short.len() < 20, "{short}");
    }
}
