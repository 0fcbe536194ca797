//! Which runs a clean-up of the state directory takes: those past the retention. It only sorts: whether one may go is
//! decided for each by the same proof as for any other removal.

use crate::observe::RunView;
use crate::run::id::RunId;
use crate::verdict::EngineSeen;
use std::time::Duration;

/// What stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// So many of the newest runs that no engine drives.
    pub newest: usize,
    /// Whatever ended no longer ago than this.
    pub younger: Option<Duration>,
}

/// What is to be done with each run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Runs past the retention, oldest first.
    pub past: Vec<RunId>,
    /// Runs that stay, each with why, newest first.
    pub kept: Vec<(RunId, String)>,
}

/// Sorts the runs of a project. The time is for the age of what has ended, and decides about no life.
pub fn plan(views: &[RunView], retention: Retention, now_ms: u64) -> Plan {
    let mut sorted: Vec<&RunView> = views.iter().collect();
    // Of a run whose file cannot be read, the id tells the second.
    let order = |v: &RunView| (v.id.second().to_owned(), v.file.known().map(|f| f.created_ms), v.id.clone());
    sorted.sort_by_key(|v| std::cmp::Reverse(order(v)));
    let mut plan = Plan::default();
    let mut newer = 0;
    for view in sorted {
        let over = view.record.known().is_some_and(|r| r.status.row().is_final);
        if view.engine.seen == EngineSeen::Running && !over {
            plan.kept.push((view.id.clone(), format!("it is {}: its engine runs", view.status)));
            continue;
        }
        newer += 1;
        if newer <= retention.newest {
            let which = if retention.newest == 1 {
                "it is the newest that is retained".to_owned()
            } else {
                format!("it is one of the newest {} that are retained", retention.newest)
            };
            plan.kept.push((view.id.clone(), which));
            continue;
        }
        match (retention.younger, ended(view)) {
            (Some(limit), Some(at)) if Duration::from_millis(now_ms.saturating_sub(at)) <= limit => {
                plan.kept.push((view.id.clone(), "it ended too recently".to_owned()));
            }
            (Some(_), None) => plan.kept.push((view.id.clone(), "nobody can tell when it ended".to_owned())),
            _ => plan.past.push(view.id.clone()),
        }
    }
    plan.past.reverse();
    plan
}

/// When a run ended, as far as its files tell; one without an end has the age of its beginning.
fn ended(view: &RunView) -> Option<u64> {
    let recorded = view.record.known().and_then(|r| r.ended_ms);
    let receipt = || view.latest().and_then(|a| a.exit.known()).map(|e| e.at_ms);
    recorded.or_else(receipt).or_else(|| view.file.known().map(|f| f.created_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::unreadable;
    use crate::run::record::Record;
    use crate::verdict::{Observation, Status, Why};

    fn view(id: &str, engine: EngineSeen, ended_ms: Option<u64>) -> RunView {
        let mut view = unreadable(&RunId::parse(id).unwrap(), &Why::new("test"));
        view.engine.seen = engine;
        let status = if ended_ms.is_some() { Status::Failed } else { Status::Running };
        view.record = Observation::Known(Record { status, ended_ms, ..Record::new() });
        view
    }

    fn past(plan: &Plan) -> Vec<&str> {
        plan.past.iter().map(RunId::as_str).collect()
    }

    const A: &str = "20260101-000000-000a";
    const B: &str = "20260102-000000-000b";
    const C: &str = "20260103-000000-000c";

    #[test]
    fn the_newest_stay_and_what_an_engine_drives_counts_for_nothing() {
        let views = [
            view(A, EngineSeen::Running, None),
            view(B, EngineSeen::Gone, Some(5)),
            view(C, EngineSeen::Gone, Some(5)),
        ];
        let all = plan(&views, Retention { newest: 0, younger: None }, 10);
        assert_eq!(past(&all), [B, C], "the oldest of all is live, and stays");
        let one = plan(&views, Retention { newest: 1, younger: None }, 10);
        assert_eq!(past(&one), [B]);
        assert_eq!(one.kept.len(), 2);
        assert!(one.kept.iter().any(|(id, why)| id.as_str() == A && why.contains("engine")), "{one:?}");
    }

    #[test]
    fn age_is_counted_from_the_end_and_a_clock_that_was_set_back_keeps() {
        let views = [view(A, EngineSeen::Gone, Some(1_000)), view(B, EngineSeen::Gone, Some(9_000))];
        let younger = Some(Duration::from_secs(5));
        assert_eq!(past(&plan(&views, Retention { newest: 0, younger }, 10_000)), [A]);
        assert_eq!(past(&plan(&views, Retention { newest: 0, younger }, 500)), Vec::<&str>::new());
    }

    #[test]
    fn one_that_cannot_be_read_has_no_age_and_is_judged_like_any_other_without_one() {
        let unread = || unreadable(&RunId::parse(A).unwrap(), &Why::new("torn"));
        let younger = Some(Duration::ZERO);
        assert!(plan(&[unread()], Retention { newest: 0, younger }, 10).past.is_empty());
        assert_eq!(past(&plan(&[unread()], Retention { newest: 0, younger: None }, 10)), [A]);
    }

    #[test]
    fn a_run_whose_record_is_final_is_not_kept_for_an_engine_that_is_just_ending() {
        let views = [view(A, EngineSeen::Running, Some(1))];
        assert_eq!(past(&plan(&views, Retention { newest: 0, younger: None }, 10)), [A]);
    }
}
