//! A reader that goes away ends a listing quietly.

use crate::harness::{World, finish_child};
use crate::samples::{Samples, Zoo};
use std::process::Stdio;

#[test]
fn a_closed_pipe_is_no_error() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    for args in [
        &["list"][..],
        &["list", "--json"],
        &["status", "0004"],
        &["logs", "0001"],
        &["schema"],
        &["man"],
        &["completions", "zsh"],
        &["mux"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = world.command(args);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("loopmux");
        let ran = finish_child(child).exits(0);
        assert_eq!(ran.err, "", "{args:?}");
    }
}

#[test]
fn a_full_disk_behind_the_output_is_an_error() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    for args in [&["list"][..], &["list", "--json"], &["man"], &["--help"], &["--version"]] {
        let full = full.try_clone().expect("/dev/full");
        let child = world.command(args).stdout(full).stderr(Stdio::piped()).spawn().expect("loopmux");
        let ran = finish_child(child).exits(1);
        assert!(ran.err.starts_with("error: cannot write the output: "), "{args:?}: {}", ran.err);
    }
}
