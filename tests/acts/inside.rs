//! A run that is deleted from inside its own window.

use crate::harness::{World, alive, eventually};
use crate::support::{is_there, yard};

/// Runs a script in a window that, once told to, deletes its own run, and gives the report.
fn from_inside(world: &World, delete: &str) -> (String, u32, String) {
    let (told, done) = (world.file("told"), world.file("done"));
    let script = format!(
        "while ! [ -e {} ]; do sleep 0.05; done; {delete} > {}.out 2>&1; echo ended > {}; sleep 600",
        told.display(),
        done.display(),
        done.display()
    );
    let (run, _) = world.launched(&["sh", "-c", &script]);
    let cli = world.cli(&run, 1);
    std::fs::write(&told, "").unwrap();
    let report = yard(world).join("reports").join(format!("{run}.delete.txt"));
    let text = eventually("the report", || match std::fs::read_to_string(&report) {
        Ok(text) if text.contains("removed") || text.contains("refused") => Ok(text),
        other => Err(format!("{other:?}, {:?}", std::fs::read_to_string(format!("{}.out", done.display())))),
    });
    (run, cli, text)
}

#[test]
fn it_completes_and_reports() {
    let world = World::new();
    let me = env!("CARGO_BIN_EXE_loopmux");
    let (run, cli, text) = from_inside(&world, &format!("{me} delete --force $LOOPMUX_RUN"));
    assert!(text.contains(&format!("removed       {run}")), "{text}");
    assert!(!alive(cli) && !is_there(&world, &run));
}

#[test]
fn it_completes_from_a_shell_with_nothing_of_the_run_in_it() {
    let world = World::new();
    let me = env!("CARGO_BIN_EXE_loopmux");
    let needed = "PATH=\"$PATH\" HOME=\"$HOME\" XDG_RUNTIME_DIR=\"$XDG_RUNTIME_DIR\" \
                  LOOPMUX_STATE_DIR=\"$LOOPMUX_STATE_DIR\" LOOPMUX_SOCKET=\"$LOOPMUX_SOCKET\"";
    let inner = format!("env -i {needed} sh -c \"{me} delete --force @last\"");
    let (run, cli, text) = from_inside(&world, &inner);
    assert!(text.contains(&format!("removed       {run}")), "{text}");
    assert!(!alive(cli) && !is_there(&world, &run));
}

#[test]
fn without_force_it_is_refused_where_it_is_asked() {
    let world = World::new();
    let me = env!("CARGO_BIN_EXE_loopmux");
    let out = world.file("out");
    let script = format!("{me} delete $LOOPMUX_RUN > {} 2>&1; echo $? >> {}", out.display(), out.display());
    let run = crate::support::ended(&world, &script);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("refused") && text.trim_end().ends_with('4'), "{text}");
    assert!(is_there(&world, &run));
}
