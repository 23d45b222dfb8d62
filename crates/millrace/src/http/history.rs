//! Figures of the past, as the head has them that leads.

use super::Api;
use super::extract::Params;
use super::resources::{Answer, named};
use crate::history::Whose;
use api::{ErrorBody, History};
use axum::Json;
use axum::extract::{Path, State};
use finding::{LegRefusal, Refusal, RequestRefusal, VolumeRefusal};
use head::order::{Figures, Order, Reply};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All resources of history.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(get_history))
        .routes(routes!(get_volume_history))
        .routes(routes!(get_drive_history))
}

impl Api {
    /// The head's counters; None: it does not tell them, since it follows, stops or hangs.
    pub async fn figures(&self) -> Option<Figures> {
        match self.door.call(Order::Figures).await {
            Ok(Reply::Figures(figures)) => Some(*figures),
            _ => None,
        }
    }

    fn history(&self, whose: Whose, mut params: Params) -> Answer<History> {
        let default = if whose == Whose::Head { 1 } else { 5 };
        let (step, since) = (params.one("step", default)?, params.one("since", 0)?);
        params.end()?;
        let unknown =
            || RequestRefusal::ParameterInvalid { parameter: "step".into(), value: step.to_string() };
        Ok(Json(self.process.history.of(whose, step, since).ok_or_else(unknown)?))
    }
}

/// What the head did, or its system
///
/// A head that follows asks the one that leads. If that is not reached, it tells what it knows of the time when it led itself.
#[utoipa::path(get, path = "/history", tag = "history",
    params(("step" = Option<u64>, Query, description = "Length of a step, seconds: 1 (kept for 10 minutes) or 60 (for a week)"),
           ("since" = Option<u64>, Query, description = "Leaves out steps that begin before, seconds since 1970-01-01 UTC")),
    responses((status = 200, description = "As far as it is kept", body = History), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_history(State(api): State<Api>, params: Params) -> Answer<History> {
    api.history(Whose::Head, params)
}

/// What a volume did
///
/// One that has done nothing yet has no steps.
#[utoipa::path(get, path = "/history/volumes/{pool}/{volume}", tag = "history",
    params(("pool" = String, Path, description = "Name, or UUID where it is shown"),
           ("volume" = String, Path, description = "Name within the pool"),
           ("step" = Option<u64>, Query, description = "Length of a step, seconds: 5 (kept for 10 minutes), 60 (for an hour) or 600 (for a week)"),
           ("since" = Option<u64>, Query, description = "Leaves out steps that begin before, seconds since 1970-01-01 UTC")),
    responses((status = 200, description = "As far as it is kept", body = History), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_volume_history(
    State(api): State<Api>,
    Path((pool, volume)): Path<(String, String)>,
    params: Params,
) -> Answer<History> {
    let name = format!("{pool}/{volume}");
    match api.status().await?.volumes.into_iter().find(|v| v.name == name) {
        Some(volume) => api.history(Whose::Volume(volume.uuid), params),
        None => Err(Refusal::from(VolumeRefusal::VolumeUnknown { volume: name }).into()),
    }
}

/// What a drive of a pool did
///
/// One that has done nothing yet has no steps.
#[utoipa::path(get, path = "/history/drives/{drive}", tag = "history",
    params(("drive" = String, Path, description = "Path or UUID"),
           ("step" = Option<u64>, Query, description = "Length of a step, seconds: 5 (kept for 10 minutes), 60 (for an hour) or 600 (for a week)"),
           ("since" = Option<u64>, Query, description = "Leaves out steps that begin before, seconds since 1970-01-01 UTC")),
    responses((status = 200, description = "As far as it is kept", body = History), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_drive_history(
    State(api): State<Api>,
    Path(name): Path<String>,
    params: Params,
) -> Answer<History> {
    // A drive of no pool has no history, whatever lies on it.
    let drives = api.status().await?.drives.into_iter().filter(|d| d.uuid.is_some()).collect();
    match named(drives, &name)?.and_then(|d| d.uuid) {
        Some(uuid) => api.history(Whose::Drive(uuid), params),
        None => Err(Refusal::from(LegRefusal::DriveUnknown { drive: name }).into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::http::tests::fake;
    use api::History;

    #[test]
    fn an_unknown_name_and_a_step_that_is_not_kept_are_refused_as_elsewhere() {
        let fake = fake();
        for (path, code) in [
            ("/history?step=2", "parameter_invalid"),
            ("/history?since=yesterday", "parameter_invalid"),
            ("/history?until=1", "parameter_unknown"),
            ("/history/volumes/tank/vm1?step=1", "parameter_invalid"),
            ("/history/volumes/tank/nothing", "volume_unknown"),
            ("/history/drives/%2Fdev%2Fnothing", "drive_unknown"),
        ] {
            let failure = fake.client.get::<History>(path).expect_err(path);
            assert_eq!(failure.code.as_deref(), Some(code), "{path}");
        }
        for (path, step, head) in [
            ("/history", 1, true),
            ("/history?step=60&since=5", 60, true),
            ("/history/volumes/tank/vm1", 5, false),
            ("/history/volumes/tank/vm1?step=600", 600, false),
            ("/history/drives/%2Fdev%2Fnvme0n1", 5, false),
        ] {
            let history: History = fake.client.get(path).expect(path);
            assert_eq!((history.step_seconds, history.times.is_some()), (step, head), "{path}");
            assert!(
                history.reads.is_empty()
                    && history.begin.is_multiple_of(step)
                    && history.begin > 1_600_000_000
            );
        }
        assert!(fake.orders.lock().expect("no panic").is_empty());
    }
}
