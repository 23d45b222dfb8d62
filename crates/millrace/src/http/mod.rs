//! The daemon's API: REST/JSON under `/api/v1`, an OpenAPI document of it, `/metrics`, and the page.
//!
//! Promise: every answer that is not a success carries `{"error": {kind, code, fields, field, message, next}}`; a
//! field or parameter that is not known is refused by name. Does not know how orders are carried out
//! (`backend::Door` does) nor who listens (`daemon` does).

mod access;
mod alarms;
mod cluster;
mod extract;
mod history;
mod machine;
mod metrics;
mod page;
mod resources;
mod serve;
mod session;

use crate::access::Access;
use crate::backend::Door;
use crate::words;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use finding::{Notice, Refusal, RequestRefusal, SystemRefusal, Why};
use head::order::{Order, Reply};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

pub use cluster::Asked;
pub use serve::{Limits, Local, Remote, serve};

/// What the process itself adds to the head's status.
#[derive(Default)]
pub struct Process {
    /// Its state directory.
    pub state_dir: String,
    /// What it was not allowed.
    pub notices: Vec<Notice>,
    /// What drives say of themselves.
    pub healths: crate::machine::Healths,
    /// Who looks at the machine below it.
    pub observer: crate::machine::Observer,
    /// Where its machines live.
    pub house: Option<uring::Watch>,
    /// Their memory for data, bytes.
    pub memory_data: u64,
    /// Notices of less weight.
    pub minor_notices: Vec<Notice>,
    /// Why the pools were not imported at the start, if they were not.
    pub held_back: Option<api::Reason>,
    /// The operator has imported a pool since: the reason above is over.
    pub resumed: AtomicBool,
    /// Why nobody listens at `api.tcp`, while that is so.
    pub deaf: Mutex<Option<api::Reason>>,
    /// That it may be one of two heads.
    pub system: Option<Arc<crate::daemon::System>>,
    /// Who is told what goes wrong, if anybody is.
    pub alarms: Option<crate::alarm::Handle>,
    /// The file of crash lines, to which the operator's import is added.
    pub crashes: Option<crate::daemon::crash::Crashes>,
    /// Figures of the past.
    pub history: crate::history::History,
    /// Who may use the API; None lets in nobody over TCP.
    pub access: Option<Arc<Access>>,
}

/// What every handler has at hand.
#[derive(Clone)]
pub struct Api {
    door: Door,
    process: Arc<Process>,
}

/// An answer that is not a success.
#[derive(Debug)]
pub struct Refused(pub Refusal);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.kind().status()).expect("the kinds have good statuses");
        let code = access::Code(self.0.why.code());
        let wait = match &*self.0.why {
            Why::Request(RequestRefusal::ApiThrottled { seconds }) => Some(*seconds),
            _ => None,
        };
        let body = axum::Json(api::ErrorBody { error: words::refusal(&self.0) });
        let mut response = (status, body).into_response();
        response.extensions_mut().insert(code);
        if let Some(seconds) = wait {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            // RFC 9110 15.5.2: a 401 says how to do better.
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Refusal> for Refused {
    fn from(r: Refusal) -> Self {
        Self(r)
    }
}

impl From<SystemRefusal> for Refused {
    fn from(r: SystemRefusal) -> Self {
        Refusal::from(r).into()
    }
}

impl From<RequestRefusal> for Refused {
    fn from(r: RequestRefusal) -> Self {
        Refusal::from(r).into()
    }
}

// What `api::Shard` and the metrics call too long.
const _: () = assert!(uring::TURN_BUDGET.as_millis() == 5);

impl Api {
    /// The API of the head behind `door`.
    pub fn new(door: Door, process: Arc<Process>) -> Self {
        Self { door, process }
    }

    async fn order(&self, order: Order) -> Result<Reply, Refused> {
        Ok(self.door.call(order).await?)
    }

    /// Whether this head speaks for its system: it is alone, or leads.
    pub fn leads(&self) -> bool {
        self.process.system.as_ref().is_none_or(|s| !s.goes_on())
    }

    /// The head as it is, with its sentences.
    pub async fn status(&self) -> Result<api::Status, Refused> {
        let Reply::Snapshot(snapshot) = self.order(Order::Status).await? else {
            return Err(odd_reply());
        };
        let mut status = words::say::status(*snapshot);
        let served = status.serves.take();
        let held_back =
            self.process.held_back.as_ref().filter(|_| !self.process.resumed.load(Ordering::Relaxed));
        let house = self.process.house.as_ref();
        let (memory_resident_bytes, memory_bytes) = house.map_or((0, 0), uring::Watch::memory);
        status.daemon = api::Daemon {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            state_dir: self.process.state_dir.clone(),
            management_only: held_back.is_some(),
            memory_bytes,
            memory_data_bytes: self.process.memory_data,
            memory_resident_bytes,
        };
        let me = self.process.system.as_ref().and_then(|s| s.letter());
        for shard in status.shards.iter_mut().filter(|s| s.head.is_none() || s.head == me) {
            let counters = house.and_then(|house| house.counters(base::Address::Shard(shard.shard)));
            if let Some(counters) = counters {
                shard.longest_turn_us = counters.longest_turn().as_micros() as u64;
                shard.long_turns = counters.long_turns.load(Ordering::Relaxed);
            }
        }
        status.notices.extend(self.process.notices.iter().cloned().map(words::noticed));
        self.process.healths.add_to(&mut status.drives);
        let of_house = house.map(uring::Watch::notices).unwrap_or_default();
        let noticed = |n| words::noticed(words::house::house_notice(n).into());
        status.notices.extend(of_house.into_iter().map(noticed));
        status.minor_notices.extend(self.process.minor_notices.iter().cloned().map(words::noticed));
        if let Some(reason) = held_back {
            status.health = status.health.max(reason.state);
            status.reasons.insert(0, reason.clone());
        }
        let in_system = self.process.system.as_ref().is_some_and(|s| s.settings().is_some());
        if in_system && let Some((mut cluster, reasons)) = cluster::of_status(self).await {
            cluster::add_served(&mut cluster, served, &status.portals);
            status.cluster = Some(cluster);
            for reason in reasons {
                status.health = status.health.max(reason.state);
                status.reasons.push(reason);
            }
        }
        if let Some(reason) = self.process.deaf.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            status.health = status.health.max(reason.state);
            status.reasons.push(reason);
        }
        Ok(status)
    }

    /// Notes why nobody listens at `api.tcp`; None: somebody does.
    pub fn set_deaf(&self, reason: Option<api::Reason>) {
        *self.process.deaf.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// A pool was imported by the operator: the head is not held back any more.
    fn resume(&self) {
        if self.process.held_back.is_some()
            && !self.process.resumed.swap(true, Ordering::Relaxed)
            && let Some(crashes) = &self.process.crashes
            && let Err(e) = crashes.resume("a pool was imported by hand")
        {
            tracing::warn!("the crash record could not be ended: {e}");
        }
    }
}

/// The Steward answered something else than was asked: our own mistake.
fn odd_reply() -> Refused {
    RequestRefusal::AnswerOfAnother.into()
}

#[derive(OpenApi)]
#[openapi(info(
    title = "Millrace",
    description = "Management of a Millrace head. Sizes are bytes, rates are bytes a second, times are \
                   YYYY-MM-DDThh:mm:ssZ. Drives are named by path (percent-encoded) or UUID.",
    license(name = "Apache-2.0", identifier = "Apache-2.0")
))]
struct Document;

fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Document::openapi())
        .nest(
            api::BASE,
            resources::routes()
                .merge(cluster::routes())
                .merge(alarms::routes())
                .merge(access::routes())
                .merge(history::routes())
                .merge(session::routes())
                .merge(machine::routes()),
        )
        .routes(utoipa_axum::routes!(metrics::metrics))
}

/// The OpenAPI 3.1 document.
pub fn openapi_json() -> String {
    let (_, document) = routes().split_for_parts();
    document.to_pretty_json().expect("a document of plain data")
}

/// The server's routes. What comes from an address must show a token.
pub fn router(api: Api) -> Router {
    let (router, _) = routes().split_for_parts();
    let system = api.process.system.clone();
    let router = router
        .fallback(no_such_resource)
        .method_not_allowed_fallback(no_such_method)
        .with_state(api.clone())
        .layer(axum::middleware::from_fn_with_state(api.clone(), access::audit));
    // In front of the routes, whose own refusal would not be JSON.
    let router = router.layer(axum::middleware::from_fn(check_path));
    let router = match system {
        Some(system) => router.layer(axum::middleware::from_fn_with_state(system, crate::daemon::forward)),
        None => router,
    };
    router.layer(axum::middleware::from_fn_with_state(api, access::admit))
}

async fn check_path(request: Request, next: Next) -> Response {
    match extract::decode(request.uri().path()) {
        Some(_) => next.run(request).await,
        None => Refused::from(RequestRefusal::PathNotText).into_response(),
    }
}

async fn no_such_resource(request: Request) -> Refused {
    RequestRefusal::ResourceUnknown { path: request.uri().path().into() }.into()
}

async fn no_such_method(request: Request) -> Refused {
    let (path, method) = (request.uri().path().into(), request.method().to_string());
    RequestRefusal::MethodUnknown { path, method }.into()
}

#[cfg(test)]
pub mod tests;
