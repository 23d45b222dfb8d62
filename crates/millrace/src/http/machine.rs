//! The machine that the head runs on: what `millrace topology`, `explain` and `drive locate` do, for programs elsewhere.

use super::extract::{Body, Params};
use super::resources::Answer;
use super::{Api, Refused};
use crate::machine::{PATIENCE, be};
use crate::words::topology as words;
use api::{DriveLocate, ErrorBody};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderName, StatusCode, header};
use serde_json::Value;
use std::sync::Arc;
use topology::Machine;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All resources of the machine.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(get_topology))
        .routes(routes!(draw_topology))
        .routes(routes!(get_explain))
        .routes(routes!(locate_drive))
}

/// The status of the head that leads, and otherwise of this one, as what is looked at with this machine.
async fn status(api: &Api) -> Option<Value> {
    let system = api.process.system.as_ref();
    let theirs = match system {
        Some(system) => system.leader_status().await,
        None => None,
    };
    let mut status = match theirs {
        Some(status) => status,
        None => serde_json::to_value(api.status().await.ok()?).ok()?,
    };
    if !status["cluster"].is_null() {
        be(&mut status, system.and_then(|s| s.letter()).into(), std::process::id().into());
    }
    Some(status)
}

/// The same, for a thread that may wait.
fn waits(api: &Api) -> impl FnMut() -> Option<Value> + Send + 'static {
    let (api, runtime) = (api.clone(), tokio::runtime::Handle::current());
    move || runtime.block_on(async { tokio::time::timeout(PATIENCE, status(&api)).await.ok()? })
}

async fn machine(api: &Api) -> Result<Arc<Machine>, Refused> {
    Ok(api.process.observer.machine(waits(api)).await?)
}

/// What the machine of the head is made of, with rates over one second: what `millrace topology --json` prints
#[utoipa::path(get, path = "/topology", tag = "machine",
    responses((status = 200, description = "As it is now", body = Value), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_topology(State(api): State<Api>, params: Params) -> Answer<Value> {
    params.end()?;
    Ok(Json(words::found(&*machine(&api).await?)))
}

/// The same, drawn
#[utoipa::path(get, path = "/topology.svg", tag = "machine",
    params(("turn" = Option<u64>, Query, description = "Any number: a browser asks once for each address of a picture")),
    responses((status = 200, description = "As it is now", content_type = "image/svg+xml"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn draw_topology(
    State(api): State<Api>,
    mut params: Params,
) -> Result<([(HeaderName, &'static str); 1], String), Refused> {
    let _: u64 = params.one("turn", 0)?;
    params.end()?;
    let drawn = topology::svg(&*machine(&api).await?, &words::label);
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], drawn))
}

/// What limits the head now, measured over one second: what `millrace explain --json` prints
#[utoipa::path(get, path = "/explain", tag = "machine",
    responses((status = 200, description = "As it is now", body = Value), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_explain(State(api): State<Api>, params: Params) -> Answer<Value> {
    params.end()?;
    Ok(Json(words::explained(&topology::explain::explain(&*machine(&api).await?))))
}

/// Switch the light at a drive's bay, in the machine of the head
#[utoipa::path(post, path = "/drives/{drive}/locate", tag = "drives", request_body = DriveLocate,
    params(("drive" = String, Path, description = "Path, UUID, serial number or slot")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn locate_drive(
    State(api): State<Api>,
    Path(drive): Path<String>,
    Body(body): Body<DriveLocate>,
) -> Result<StatusCode, Refused> {
    api.process.observer.locate(waits(&api), drive, body.on).await?;
    Ok(StatusCode::NO_CONTENT)
}
