use crate::config::RunConfig;
use crate::dumbbell::Dumbbell;
use crate::error::SimError;
use crate::result::RunResult;

pub(crate) fn run(_net: Dumbbell, _run: RunConfig<'_>) -> Result<RunResult, SimError> {
    Err(SimError::config("not built yet"))
}
