//! `loopmux engine`.

use super::args::EngineArgs;
use super::{CliError, Context, ErrorCode, Outcome};

/// Executes the command.
///
/// # Errors
/// What went wrong, with the contract's code.
pub fn execute(_ctx: &Context, _args: &EngineArgs) -> Outcome {
    Err(CliError::new(ErrorCode::Internal, "this command is not there yet"))
}
