//! The resources: each handler turns a request into an order and its reply into JSON.

use super::cluster::{Asked, head_named, link_at};
use super::extract::{Body, Params};
use super::{Api, Refused, odd_reply};
use crate::words::connect::how_to_connect;
use crate::words::say;
use api::{Created, ErrorBody};
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::{Extension, Json};
use finding::{
    Cause, HostRefusal, LegRefusal, PoolRefusal, RecordCause, RecordRefusal, Refusal, RequestRefusal,
    VolumeRefusal,
};
use head::order::{HostSettings, Order, Reply, VolumeCaps};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest wait of a request for events.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How often the log is looked at while a request waits.
const WAIT_STEP: Duration = Duration::from_millis(200);

/// An answer with a body.
pub type Answer<T> = Result<Json<T>, Refused>;
type Made = Result<(StatusCode, Json<Created>), Refused>;
type Done = Result<StatusCode, Refused>;

/// All resources below `/api/v1`.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(get_openapi))
        .routes(routes!(get_status))
        .routes(routes!(list_events))
        .routes(routes!(list_drives))
        .routes(routes!(get_drive, remove_drive))
        .routes(routes!(fail_drive))
        .routes(routes!(return_drive))
        .routes(routes!(restore_label))
        .routes(routes!(replace_drive))
        .routes(routes!(shape_drive))
        .routes(routes!(list_pools, create_pool))
        .routes(routes!(get_pool, destroy_pool))
        .routes(routes!(add_to_pool, remove_arrays))
        .routes(routes!(release_pool))
        .routes(routes!(scrub_pool))
        .routes(routes!(add_spare))
        .routes(routes!(add_leg))
        .routes(routes!(list_imports, import_pool))
        .routes(routes!(list_volumes, create_volume))
        .routes(routes!(get_volume, set_volume, remove_volume))
        .routes(routes!(list_hosts, add_host))
        .routes(routes!(get_host, set_host, remove_host))
        .routes(routes!(check_host))
        .routes(routes!(get_host_connect))
        .routes(routes!(list_portals, add_portal))
        .routes(routes!(remove_portal))
        .routes(routes!(list_exports, add_export))
        .routes(routes!(remove_export))
}

/// The answer to an order that makes something.
fn made(reply: Reply) -> Made {
    let created = match reply {
        Reply::Done => Created::default(),
        Reply::Created { uuid, notices } => {
            let notices = notices.into_iter().map(crate::words::noticed).collect();
            Created { uuid: (!uuid.is_nil()).then(|| uuid.to_string()), notices }
        }
        Reply::Snapshot(_)
        | Reply::Drives(_)
        | Reply::Importable(_)
        | Reply::HostChecked(_)
        | Reply::System(_)
        | Reply::Figures(_)
        | Reply::Events(_) => {
            return Err(odd_reply());
        }
    };
    Ok((StatusCode::CREATED, Json(created)))
}

/// The answer to an order that only acts.
fn done(reply: Reply) -> Done {
    made(reply).map(|_| StatusCode::NO_CONTENT)
}

/// This document
#[utoipa::path(get, path = "/openapi.json", tag = "head",
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json")))]
async fn get_openapi() -> ([(HeaderName, &'static str); 1], String) {
    ([(CONTENT_TYPE, "application/json")], super::openapi_json())
}

/// The whole head
#[utoipa::path(get, path = "/status", tag = "head",
    responses((status = 200, description = "As it is now", body = api::Status), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_status(State(api): State<Api>) -> Answer<api::Status> {
    api.status().await.map(Json)
}

/// What happened, oldest first; with `wait`, not before something has
///
/// A head that does not lead tells the events of the one that does, and its own that are of the system.
#[utoipa::path(get, path = "/events", tag = "head",
    params(("since" = Option<u64>, Query, description = "First number wanted; 0 for all that are kept"),
           ("from" = Option<String>, Query, description = "First time wanted, such as 2026-11-20T14:02:11Z"),
           ("level" = Option<api::Weight>, Query, description = "Least weight wanted"),
           ("last" = Option<u64>, Query, description = "Only so many, the latest"),
           ("own" = Option<u64>, Query, description = "The same of a head's own events if it does not lead, from `next_own`"),
           ("wait" = Option<u64>, Query, description = "Seconds to wait for an event, at most 60")),
    responses((status = 200, description = "As it is now", body = api::Events), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_events(State(api): State<Api>, mut params: Params) -> Answer<api::Events> {
    let since: u64 = params.one("since", 0)?;
    // Who was told of two heads asks one that leads by now: what it said itself is what it tells.
    let since: u64 = params.one("own", since)?;
    let wait = Duration::from_secs(params.one("wait", 0)?).min(WAIT_MAX);
    let (from, level) = (params.one("from", api::Time(0))?, params.one("level", api::Weight::Note)?);
    let last = params.one("last", usize::MAX)?;
    params.end()?;
    let deadline = tokio::time::Instant::now() + wait;
    let mut next = since;
    loop {
        let Reply::Events(lines) = api.order(Order::Events { since: next }).await? else {
            return Err(odd_reply());
        };
        next = lines.last().map_or(next, |e| e.number + 1);
        let wanted = |e: &api::Event| e.at >= from && e.weight >= level;
        let mut events: Vec<api::Event> = lines.into_iter().filter(wanted).map(say::event).collect();
        if !events.is_empty() || tokio::time::Instant::now() >= deadline {
            events.drain(..events.len().saturating_sub(last));
            return Ok(Json(api::Events { events, next, next_own: None }));
        }
        tokio::time::sleep(WAIT_STEP).await;
    }
}

/// Our drives and this machine's candidates
#[utoipa::path(get, path = "/drives", tag = "drives",
    params(("look" = Option<Vec<String>>, Query, description = "A further drive to look at; may be repeated")),
    responses((status = 200, description = "As it is now", body = Vec<api::Drive>), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_drives(State(api): State<Api>, mut params: Params) -> Answer<Vec<api::Drive>> {
    let drives = params.all("look");
    params.end()?;
    drives_of(&api, drives).await.map(Json)
}

async fn drives_of(api: &Api, look: Vec<String>) -> Result<Vec<api::Drive>, Refused> {
    match api.order(Order::DriveList { drives: look }).await? {
        Reply::Drives(drives) => Ok(drives.into_iter().map(say::drive).collect()),
        Reply::Done
        | Reply::Created { .. }
        | Reply::Snapshot(_)
        | Reply::Importable(_)
        | Reply::HostChecked(_)
        | Reply::System(_)
        | Reply::Figures(_)
        | Reply::Events(_) => Err(odd_reply()),
    }
}

/// One drive
#[utoipa::path(get, path = "/drives/{drive}", tag = "drives",
    params(("drive" = String, Path, description = "Path or UUID")),
    responses((status = 200, description = "As it is now", body = api::Drive), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_drive(State(api): State<Api>, Path(name): Path<String>) -> Answer<api::Drive> {
    match named(drives_of(&api, Vec::new()).await?, &name)? {
        Some(drive) => Ok(Json(drive)),
        None => {
            // Perhaps a file, or a link to a device: the head looks at it if it is named.
            let looked = named(drives_of(&api, vec![name.clone()]).await?, &name)?;
            looked.map(Json).ok_or_else(|| Refusal::from(LegRefusal::DriveUnknown { drive: name }).into())
        }
    }
}

/// The drive of this path or UUID; refused if several have it.
pub fn named(drives: Vec<api::Drive>, name: &str) -> Result<Option<api::Drive>, Refusal> {
    let is = |d: &api::Drive| d.path == name || d.uuid.is_some_and(|u| name.parse() == Ok(u));
    let mut known: Vec<api::Drive> = drives.into_iter().filter(is).collect();
    if known.len() > 1 {
        return Err(LegRefusal::DriveNameShared { drive: name.into(), drives: known.len() }.into());
    }
    Ok(known.pop())
}

/// Take a drive from its pool: a hot spare, or a leg of a mirror
#[utoipa::path(delete, path = "/drives/{drive}", tag = "drives",
    params(("drive" = String, Path, description = "Path or UUID"),
        ("force" = Option<bool>, Query, description = "Even though a mirror is left without redundancy")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn remove_drive(State(api): State<Api>, Path(drive): Path<String>, mut params: Params) -> Done {
    let force = params.one("force", false)?;
    params.end()?;
    done(api.order(Order::DriveRemove { drive, force }).await?)
}

/// Take a drive out of its mirror
#[utoipa::path(post, path = "/drives/{drive}/fail", tag = "drives",
    params(("drive" = String, Path, description = "Path or UUID"),
        ("force" = Option<bool>, Query, description = "Even though the files of all other legs were removed")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn fail_drive(State(api): State<Api>, Path(drive): Path<String>, mut params: Params) -> Done {
    let force = params.one("force", false)?;
    params.end()?;
    done(api.order(Order::DriveFail { drive, force }).await?)
}

/// Take a drive back into its mirror
#[utoipa::path(post, path = "/drives/{drive}/return", tag = "drives",
    params(("drive" = String, Path, description = "Path or UUID")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn return_drive(State(api): State<Api>, Path(drive): Path<String>) -> Done {
    done(api.order(Order::DriveReturn { drive }).await?)
}

/// Write the label of a drive in use anew, and all else that the head keeps there
#[utoipa::path(post, path = "/drives/{drive}/restore-label", tag = "drives",
    params(("drive" = String, Path, description = "Path or UUID"),
        ("yes" = Option<bool>, Query, description = "Even though data of the drive may be damaged, too"),
        ("force" = Option<bool>, Query, description = "Even though something else was written there, which is lost")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn restore_label(State(api): State<Api>, Path(drive): Path<String>, mut params: Params) -> Done {
    let (yes, force) = (params.one("yes", false)?, params.one("force", false)?);
    params.end()?;
    done(api.order(Order::LabelRestore { drive, yes, force }).await?)
}

/// Put another drive in a drive's place
#[utoipa::path(post, path = "/drives/{drive}/replace", tag = "drives", request_body = api::DriveReplace,
    params(("drive" = String, Path, description = "Path or UUID")),
    responses((status = 200, description = "It is done; how much of the new drive stays unused is told", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn replace_drive(
    State(api): State<Api>,
    Path(old): Path<String>,
    Body(b): Body<api::DriveReplace>,
) -> Answer<Created> {
    made(api.order(Order::DriveReplace { old, new: b.new, force: b.force }).await?)
        .map(|(_, created)| created)
}

/// Make a drive behave artificially, until restart
#[utoipa::path(put, path = "/drives/{drive}/shape", tag = "drives", request_body = api::Shape,
    params(("drive" = String, Path, description = "Path or UUID")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn shape_drive(State(api): State<Api>, Path(drive): Path<String>, Body(b): Body<api::Shape>) -> Done {
    done(api.order(Order::DriveShape { drive, shape: (&b).into() }).await?)
}

/// All pools
#[utoipa::path(get, path = "/pools", tag = "pools",
    responses((status = 200, description = "As it is now", body = Vec<api::Pool>), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_pools(State(api): State<Api>) -> Answer<Vec<api::Pool>> {
    Ok(Json(api.status().await?.pools))
}

/// One pool
#[utoipa::path(get, path = "/pools/{pool}", tag = "pools",
    params(("pool" = String, Path, description = "Name, or UUID where it is shown")),
    responses((status = 200, description = "As it is now", body = api::Pool), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_pool(State(api): State<Api>, Path(name): Path<String>) -> Answer<api::Pool> {
    let pool = api.status().await?.pools.into_iter().find(|p| p.name == name || name.parse() == Ok(p.uuid));
    pool.map(Json).ok_or_else(|| Refusal::from(PoolRefusal::PoolUnknown { pool: name }).into())
}

/// Make a pool of drives
#[utoipa::path(post, path = "/pools", tag = "pools", request_body = api::PoolCreate,
    responses((status = 201, description = "It is made", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn create_pool(State(api): State<Api>, Body(b): Body<api::PoolCreate>) -> Made {
    let api::PoolCreate { name, arrays, chunk_bytes, block_bytes, measure, force } = b;
    made(api.order(Order::PoolCreate { name, arrays, chunk_bytes, block_bytes, measure, force }).await?)
}

/// Append arrays to a pool, as a new zone
#[utoipa::path(post, path = "/pools/{pool}/arrays", tag = "pools", request_body = api::PoolAdd,
    params(("pool" = String, Path, description = "Name, or UUID where it is shown")),
    responses((status = 201, description = "It is made", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn add_to_pool(State(api): State<Api>, Path(pool): Path<String>, Body(b): Body<api::PoolAdd>) -> Made {
    made(api.order(Order::PoolAdd { pool, arrays: b.arrays, force: b.force }).await?)
}

/// Take the arrays that were added last from a pool, on which nothing lies
#[utoipa::path(delete, path = "/pools/{pool}/arrays", tag = "pools",
    params(("pool" = String, Path, description = "Name, or UUID where it is shown"),
           ("array" = Vec<String>, Query, description = "An array as `name` has it, `mirror-1`; may be repeated")),
    responses((status = 200, description = "It is done; drives that keep their label are told", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn remove_arrays(
    State(api): State<Api>,
    Path(pool): Path<String>,
    mut params: Params,
) -> Answer<Created> {
    let arrays = params.all("array");
    params.end()?;
    made(api.order(Order::ArrayRemove { pool, arrays }).await?).map(|(_, created)| created)
}

/// Let go of a pool, so that another head may import it
#[utoipa::path(post, path = "/pools/{pool}/release", tag = "pools",
    params(("pool" = String, Path, description = "Name, or UUID where it is shown"),
           ("force" = Option<bool>, Query, description = "Even though its drives cannot be marked as released, or what it holds ends by it"),
           ("disconnect" = Option<bool>, Query, description = "Even though hosts are connected that lose something by it")),
    responses((status = 200, description = "It is done; what the next import should know is told", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn release_pool(
    State(api): State<Api>,
    Path(pool): Path<String>,
    mut params: Params,
) -> Answer<Created> {
    let (force, disconnect) = (params.one("force", false)?, params.one("disconnect", false)?);
    params.end()?;
    made(api.order(Order::PoolRelease { pool, force, disconnect }).await?).map(|(_, created)| created)
}

/// Add a hot spare to a pool
#[utoipa::path(post, path = "/pools/{pool}/spares", tag = "pools", request_body = api::SpareAdd,
    params(("pool" = String, Path, description = "Name, or UUID where it is shown")),
    responses((status = 201, description = "It is a spare; what it does not fit is told", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn add_spare(State(api): State<Api>, Path(pool): Path<String>, Body(b): Body<api::SpareAdd>) -> Made {
    made(api.order(Order::SpareAdd { pool, drive: b.drive, force: b.force }).await?)
}

/// Add a leg to a mirror
#[utoipa::path(post, path = "/pools/{pool}/legs", tag = "pools", request_body = api::LegAdd,
    params(("pool" = String, Path, description = "Name, or UUID where it is shown")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn add_leg(State(api): State<Api>, Path(pool): Path<String>, Body(b): Body<api::LegAdd>) -> Done {
    let api::LegAdd { drive, mirror, force } = b;
    done(api.order(Order::LegAdd { pool, mirror, drive, force }).await?)
}

/// Compare the legs of a pool's mirrors, now or by schedule
#[utoipa::path(post, path = "/pools/{pool}/scrub", tag = "pools", request_body = api::PoolScrub,
    params(("pool" = String, Path, description = "Name, or UUID where it is shown")),
    responses((status = 200, description = "It is done; what a repair leaves alone is told", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn scrub_pool(
    State(api): State<Api>,
    Path(pool): Path<String>,
    Body(b): Body<api::PoolScrub>,
) -> Answer<Created> {
    made(api.order(Order::PoolScrub { pool, action: b }).await?).map(|(_, created)| created)
}

/// Wipe a pool's labels; its volumes are lost
#[utoipa::path(delete, path = "/pools/{pool}", tag = "pools",
    params(("pool" = String, Path, description = "Name, or UUID where it is shown"),
           ("force" = Option<bool>, Query, description = "Even though it has volumes"),
           ("disconnect" = Option<bool>, Query, description = "Even though hosts are connected that lose something by it")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn destroy_pool(State(api): State<Api>, Path(pool): Path<String>, mut params: Params) -> Done {
    let (force, disconnect) = (params.one("force", false)?, params.one("disconnect", false)?);
    params.end()?;
    done(api.order(Order::PoolDestroy { pool, force, disconnect }).await?)
}

/// Pools that lie on drives here and are not imported
#[utoipa::path(get, path = "/imports", tag = "pools",
    params(("look" = Option<Vec<String>>, Query, description = "A further drive to look at; may be repeated")),
    responses((status = 200, description = "As it is now", body = Vec<api::Importable>), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_imports(State(api): State<Api>, mut params: Params) -> Answer<Vec<api::Importable>> {
    let drives = params.all("look");
    params.end()?;
    match api.order(Order::PoolImportable { drives }).await? {
        Reply::Importable(found) => Ok(Json(found.into_iter().map(say::importable).collect())),
        Reply::Done
        | Reply::Created { .. }
        | Reply::Snapshot(_)
        | Reply::Drives(_)
        | Reply::HostChecked(_)
        | Reply::System(_)
        | Reply::Figures(_)
        | Reply::Events(_) => Err(odd_reply()),
    }
}

/// Take a pool
#[utoipa::path(post, path = "/imports", tag = "pools", request_body = api::PoolImport,
    responses((status = 201, description = "It is made", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn import_pool(State(api): State<Api>, Body(b): Body<api::PoolImport>) -> Made {
    let api::PoolImport { pool, name, drives, force } = b;
    let reply = api.order(Order::PoolImport { pool, name, drives, force }).await?;
    api.resume();
    made(reply)
}

/// All volumes
#[utoipa::path(get, path = "/volumes", tag = "volumes",
    responses((status = 200, description = "As it is now", body = Vec<api::Volume>), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_volumes(State(api): State<Api>) -> Answer<Vec<api::Volume>> {
    Ok(Json(api.status().await?.volumes))
}

/// One volume
#[utoipa::path(get, path = "/volumes/{pool}/{volume}", tag = "volumes",
    params(("pool" = String, Path, description = "Name, or UUID where it is shown"),
           ("volume" = String, Path, description = "Name within the pool")),
    responses((status = 200, description = "As it is now", body = api::Volume), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_volume(
    State(api): State<Api>,
    Path((pool, volume)): Path<(String, String)>,
) -> Answer<api::Volume> {
    let name = format!("{pool}/{volume}");
    let found = api.status().await?.volumes.into_iter().find(|v| v.name == name);
    found.map(Json).ok_or_else(|| Refusal::from(VolumeRefusal::VolumeUnknown { volume: name }).into())
}

/// Make a volume
#[utoipa::path(post, path = "/volumes", tag = "volumes", request_body = api::VolumeCreate,
    responses((status = 201, description = "It is made", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn create_volume(State(api): State<Api>, Body(b): Body<api::VolumeCreate>) -> Made {
    let Some((pool, name)) = b.name.split_once('/') else {
        let why = VolumeRefusal::VolumeNameHasNoPool { name: b.name };
        return Err(Refusal::from(why).about("name").into());
    };
    let (pool, name) = (pool.to_string(), name.to_string());
    made(api.order(Order::VolumeCreate { pool, name, bytes: b.bytes, block_bytes: b.block_bytes }).await?)
}

/// Resize, rename or cap a volume
#[utoipa::path(patch, path = "/volumes/{pool}/{volume}", tag = "volumes", request_body = api::VolumeSet,
    params(("pool" = String, Path, description = "Name, or UUID where it is shown"),
           ("volume" = String, Path, description = "Name within the pool"),
           ("disconnect" = Option<bool>, Query, description = "Even though hosts are connected that lose something by it")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn set_volume(
    State(api): State<Api>,
    Path((pool, volume)): Path<(String, String)>,
    mut params: Params,
    Body(b): Body<api::VolumeSet>,
) -> Done {
    let volume = format!("{pool}/{volume}");
    let disconnect = params.one("disconnect", false)?;
    params.end()?;
    let caps = VolumeCaps { iops_max: b.iops_max, mbps_max: b.mbps_max, weight: b.weight };
    let order = match (b.bytes, b.name, caps != VolumeCaps::default()) {
        (Some(bytes), None, false) => Order::VolumeResize { volume, bytes, force: b.force, disconnect },
        (None, Some(name), false) => Order::VolumeRename { volume, name },
        (None, None, true) => Order::VolumeCaps { volume, caps },
        (None, None, false) => return Err(RequestRefusal::VolumeUnchanged.into()),
        (_, name, _) => {
            let refused = Refusal::from(RequestRefusal::VolumeChangesTogether);
            return Err(if name.is_some() { refused.about("name") } else { refused }.into());
        }
    };
    done(api.order(order).await?)
}

/// Remove a volume
#[utoipa::path(delete, path = "/volumes/{pool}/{volume}", tag = "volumes",
    params(("pool" = String, Path, description = "Name, or UUID where it is shown"),
           ("volume" = String, Path, description = "Name within the pool"),
           ("force" = Option<bool>, Query, description = "Even though it is exported"),
           ("disconnect" = Option<bool>, Query, description = "Even though hosts are connected that lose something by it, or it may hold data")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn remove_volume(
    State(api): State<Api>,
    Path((pool, volume)): Path<(String, String)>,
    mut params: Params,
) -> Done {
    let (force, disconnect) = (params.one("force", false)?, params.one("disconnect", false)?);
    params.end()?;
    done(api.order(Order::VolumeRemove { volume: format!("{pool}/{volume}"), force, disconnect }).await?)
}

/// All hosts
#[utoipa::path(get, path = "/hosts", tag = "hosts",
    responses((status = 200, description = "As it is now", body = Vec<api::Host>), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_hosts(State(api): State<Api>) -> Answer<Vec<api::Host>> {
    let status = api.status().await?;
    known("hosts", &status)?;
    Ok(Json(status.hosts))
}

/// Refuses to say what there is, if the file that would say so could not be read.
fn known(name: &str, status: &api::Status) -> Result<(), Refused> {
    let is_it = |cause: &&Cause| match cause {
        Cause::Record(RecordCause::FileUnreadable { file, .. }) => file == name,
        _ => false,
    };
    let Some(why) = status.reasons.iter().map(|r| &r.cause).find(is_it) else { return Ok(()) };
    Err(Refusal::from(RecordRefusal::FileNotRead { why: Box::new(why.clone()) }).into())
}

/// One host
#[utoipa::path(get, path = "/hosts/{host}", tag = "hosts",
    params(("host" = String, Path, description = "Short name")),
    responses((status = 200, description = "As it is now", body = api::Host), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_host(State(api): State<Api>, Path(name): Path<String>) -> Answer<api::Host> {
    let status = api.status().await?;
    known("hosts", &status)?;
    let host = status.hosts.into_iter().find(|h| h.name == name);
    host.map(Json).ok_or_else(|| Refusal::from(HostRefusal::HostUnknown { host: name }).into())
}

/// How a host connects to what is exported to it
#[utoipa::path(get, path = "/hosts/{host}/connect", tag = "hosts",
    params(("host" = String, Path, description = "Short name")),
    responses((status = 200, description = "As it is now", body = api::HostConnect), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_host_connect(State(api): State<Api>, Path(name): Path<String>) -> Answer<api::HostConnect> {
    let status = api.status().await?;
    known("hosts", &status)?;
    let host = status.hosts.iter().find(|h| h.name == name);
    let host = host.ok_or_else(|| Refused::from(Refusal::from(HostRefusal::HostUnknown { host: name })))?;
    Ok(Json(how_to_connect(&status, host, machine_address())))
}

/// The address from which this machine would speak to another network. Nothing is sent: the kernel only looks for a route.
fn machine_address() -> Option<IpAddr> {
    const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((ELSEWHERE, 9)).ok()?;
    socket.local_addr().ok().map(|a| a.ip()).filter(|ip| !ip.is_unspecified())
}

/// Make a host known
#[utoipa::path(post, path = "/hosts", tag = "hosts", request_body = api::HostAdd,
    responses((status = 201, description = "It is made", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn add_host(State(api): State<Api>, Body(b): Body<api::HostAdd>) -> Made {
    let settings = HostSettings {
        nqns: Some(b.nqns),
        iqns: Some(b.iqns),
        chap_secret: b.chap_secret.map(|s| Some(s.into())),
        chap_user: b.chap_user,
        mutual_secret: b.mutual_secret.map(|s| Some(s.into())),
    };
    made(api.order(Order::HostAdd { name: b.name, settings }).await?)
}

/// Change a host
#[utoipa::path(patch, path = "/hosts/{host}", tag = "hosts", request_body = api::HostSet,
    params(("host" = String, Path, description = "Short name"),
           ("disconnect" = Option<bool>, Query, description = "Even though hosts are connected that lose something by it")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn set_host(
    State(api): State<Api>,
    Path(name): Path<String>,
    mut params: Params,
    Body(b): Body<api::HostSet>,
) -> Done {
    let disconnect = params.one("disconnect", false)?;
    params.end()?;
    let settings = HostSettings {
        nqns: b.nqns,
        iqns: b.iqns,
        chap_secret: b.chap_secret.map(|s| s.map(Into::into)),
        chap_user: b.chap_user,
        mutual_secret: b.mutual_secret.map(|s| s.map(Into::into)),
    };
    done(api.order(Order::HostSet { name, settings, disconnect }).await?)
}

/// Whether a host has these secrets, which no answer shows
#[utoipa::path(post, path = "/hosts/{host}/check", tag = "hosts", request_body = api::HostCheck,
    params(("host" = String, Path, description = "Short name")),
    responses((status = 200, description = "Which of them it has", body = api::HostChecked), (status = "default", description = "Why not", body = ErrorBody)))]
async fn check_host(
    State(api): State<Api>,
    Path(name): Path<String>,
    Body(b): Body<api::HostCheck>,
) -> Answer<api::HostChecked> {
    let (chap_secret, mutual_secret) = (b.chap_secret.map(Into::into), b.mutual_secret.map(Into::into));
    let reply = api.order(Order::HostCheck { name, chap_secret, mutual_secret }).await?;
    let Reply::HostChecked(checked) = reply else { return Err(odd_reply()) };
    Ok(Json(checked))
}

/// Forget a host
#[utoipa::path(delete, path = "/hosts/{host}", tag = "hosts",
    params(("host" = String, Path, description = "Short name"),
           ("force" = Option<bool>, Query, description = "Even though volumes are exported to it"),
           ("disconnect" = Option<bool>, Query, description = "Even though hosts are connected that lose something by it")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn remove_host(State(api): State<Api>, Path(name): Path<String>, mut params: Params) -> Done {
    let (force, disconnect) = (params.one("force", false)?, params.one("disconnect", false)?);
    params.end()?;
    done(api.order(Order::HostRemove { name, force, disconnect }).await?)
}

/// All portals
#[utoipa::path(get, path = "/portals", tag = "portals",
    responses((status = 200, description = "As it is now", body = Vec<api::Portal>), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_portals(State(api): State<Api>) -> Answer<Vec<api::Portal>> {
    let status = api.status().await?;
    known("portals", &status)?;
    Ok(Json(status.portals))
}

fn address(text: &str) -> Result<SocketAddr, Refused> {
    text.parse().map_err(|_| RequestRefusal::AddressInvalid { address: text.into() }.into())
}

/// Listen at an address
#[utoipa::path(post, path = "/portals", tag = "portals", request_body = api::PortalAdd,
    responses((status = 201, description = "It is made", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn add_portal(
    State(api): State<Api>,
    asked: Option<Extension<Asked>>,
    Body(b): Body<api::PortalAdd>,
) -> Made {
    let (protocol, address) = (b.protocol.into(), address(&b.address)?);
    let interface = match b.interface {
        None => None,
        Some(interface) => {
            Some(interface.parse().map_err(|()| RequestRefusal::InterfaceInvalid { interface })?)
        }
    };
    let moves = match (b.prefix, interface) {
        (None, None) => None,
        (None, Some(_)) => return Err(RequestRefusal::InterfaceWithoutPrefix.into()),
        (Some(prefix), interface) => Some(base::view::Moves { prefix, interface }),
    };
    let head = match (b.head.as_deref(), asked) {
        (Some(_), _) if moves.is_some() => return Err(RequestRefusal::MovingAddressOfHead.into()),
        (Some(name), _) => Some(head_named(&api, name).await?),
        // It is at the head that leads.
        (None, _) if moves.is_some() => None,
        (None, asked) => asked.map(|Extension(Asked(head))| head),
    };
    let head = head.map(|h| h.index() as u8);
    if let Some(at) = link_at(&api, address).await? {
        return Err(RequestRefusal::AddressOfLink { address: at.to_string() }.into());
    }
    let (status, mut created) = made(api.order(Order::PortalAdd { protocol, address, moves, head }).await?)?;
    let link = api.process.system.as_ref().map_or(vec![], |s| s.addresses());
    created.notices.extend(api::link_notices(&link, &[address]).into_iter().map(crate::words::noticed));
    Ok((status, created))
}

/// Listen there no more
#[utoipa::path(delete, path = "/portals/{protocol}/{address}", tag = "portals",
    params(("protocol" = String, Path, description = "nvme, discovery or iscsi"),
           ("address" = String, Path, description = "Address and port"),
           ("disconnect" = Option<bool>, Query, description = "Even though hosts are connected that lose something by it")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn remove_portal(
    State(api): State<Api>,
    Path((protocol, at)): Path<(String, String)>,
    mut params: Params,
) -> Done {
    let disconnect = params.one("disconnect", false)?;
    params.end()?;
    let protocol: api::Protocol =
        protocol.parse().map_err(|_| RequestRefusal::ProtocolUnknown { protocol })?;
    let (protocol, address) = (protocol.into(), address(&at)?);
    done(api.order(Order::PortalRemove { protocol, address, disconnect }).await?)
}

/// All exports
#[utoipa::path(get, path = "/exports", tag = "exports",
    responses((status = 200, description = "As it is now", body = Vec<api::Export>), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_exports(State(api): State<Api>) -> Answer<Vec<api::Export>> {
    let volumes = api.status().await?.volumes;
    let exports = volumes.into_iter().flat_map(|v| {
        let (volume, nsid) = (v.name, v.nsid);
        v.exports.into_iter().map(move |e| api::Export {
            volume: volume.clone(),
            host: e.host,
            names: e.names,
            nsid,
            lun: e.lun,
        })
    });
    Ok(Json(exports.collect()))
}

/// Give a volume to a host
#[utoipa::path(post, path = "/exports", tag = "exports", request_body = api::ExportAdd,
    responses((status = 201, description = "It is made", body = Created), (status = "default", description = "Why not", body = ErrorBody)))]
async fn add_export(State(api): State<Api>, Body(b): Body<api::ExportAdd>) -> Made {
    made(api.order(Order::Export { volume: b.volume, host: b.host, lun: b.lun }).await?)
}

/// Take a volume from a host
#[utoipa::path(delete, path = "/exports/{pool}/{volume}/{host}", tag = "exports",
    params(("pool" = String, Path, description = "Name, or UUID where it is shown"),
           ("volume" = String, Path, description = "Name within the pool"),
           ("host" = String, Path, description = "Short name"),
           ("disconnect" = Option<bool>, Query, description = "Even though hosts are connected that lose something by it")),
    responses((status = 204, description = "It is done"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn remove_export(
    State(api): State<Api>,
    Path((pool, volume, host)): Path<(String, String, String)>,
    mut params: Params,
) -> Done {
    let disconnect = params.one("disconnect", false)?;
    params.end()?;
    done(api.order(Order::Unexport { volume: format!("{pool}/{volume}"), host, disconnect }).await?)
}
