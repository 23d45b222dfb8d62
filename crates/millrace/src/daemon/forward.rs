//! Requests to a head that does not lead: they go on to the one that does, over the link once at most. Where that is not reached, or
//! leads no more than this one, the head says what it knows itself.

use super::System;
use super::system::{BODY_MAX, Unanswered};
use super::told::Asked;
use crate::access::Asking;
use crate::http::{Asked as PassedOn, Refused};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use finding::{RequestRefusal, SystemRefusal};
use std::sync::Arc;

/// The status of an answer of a head that does not lead, or that stops.
const NOT_READY: u16 = StatusCode::SERVICE_UNAVAILABLE.as_u16();

/// Requests that a head answers itself, whatever it is in its system.
fn is_own(path: &str) -> bool {
    let path = path.strip_prefix(api::BASE).unwrap_or(path);
    let own = ["/system", "/tokens", "/alarms", "/session", "/topology", "/explain"];
    // A bay is of the machine that the head runs on.
    let is_bay = matches!(path.split('/').collect::<Vec<_>>()[..], ["", "drives", _, "locate"]);
    own.iter().any(|o| path.starts_with(o)) || is_bay || path == "/openapi.json" || path == "/daemon"
}

impl System {
    /// The status that the head that leads tells, if that is the other one and it is reached.
    pub async fn leader_status(&self) -> Option<serde_json::Value> {
        if !self.goes_on() {
            return None;
        }
        let uri = format!("{}/status", api::BASE);
        match self.ask_other("GET".into(), uri, String::new(), None).await.ok()? {
            (200, _, body) => serde_json::from_str(&body).ok(),
            _ => None,
        }
    }
}

/// What a head tells of itself if the one that leads is not reached: whoever looks for the reason asks for this.
fn is_told_alone(method: &Method, path: &str) -> bool {
    let path = path.strip_prefix(api::BASE).unwrap_or(path);
    method == Method::GET && ["/status", "/events", "/history", "/metrics"].contains(&path)
}

/// In front of the routes: what is for the head that leads goes on to it.
pub async fn forward(State(system): State<Arc<System>>, request: Request, next: Next) -> Response {
    if is_own(request.uri().path()) || !system.goes_on() {
        return next.run(request).await;
    }
    if request.extensions().get::<PassedOn>().is_some() {
        return Refused::from(SystemRefusal::NobodyLeads).into_response();
    }
    if request.method() == Method::GET && request.uri().path() == format!("{}/events", api::BASE) {
        return tell_events(&system, request, next).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_MAX).await else {
        return Refused::from(RequestRefusal::RequestTooLongForLink).into_response();
    };
    let text = String::from_utf8_lossy(&body).into_owned();
    let uri = parts.uri.path_and_query().map_or("/".to_string(), ToString::to_string);
    let asking = parts.extensions.get::<Asking>().cloned();
    match system.ask_other(parts.method.to_string(), uri, text, asking).await {
        // A head that does not lead tells what is known without a leader.
        Err(_) | Ok((NOT_READY, ..)) if is_told_alone(&parts.method, parts.uri.path()) => {
            next.run(Request::from_parts(parts, Body::from(body))).await
        }
        Ok((status, kind, body)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            (status, [(header::CONTENT_TYPE, kind)], body).into_response()
        }
        Err(Unanswered::Lost) if parts.method != Method::GET => {
            Refused::from(SystemRefusal::AnswerLost).into_response()
        }
        Err(_) => Refused::from(SystemRefusal::LeaderUnreached).into_response(),
    }
}

/// Events of both heads, as far as they are reached.
async fn tell_events(system: &System, request: Request, next: Next) -> Response {
    let asked = Asked::of(request.uri().query());
    let theirs = match system.ask_other("GET".into(), asked.of_other(), String::new(), None).await {
        Err(_) | Ok((NOT_READY, ..)) => None,
        Ok((status, kind, body)) => match (status, serde_json::from_str(&body)) {
            (200, Ok(events)) => Some(events),
            _ => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
                return (status, [(header::CONTENT_TYPE, kind)], body).into_response();
            }
        },
    };
    let Ok(uri) = asked.of_this(theirs.is_none()).parse() else {
        return next.run(request).await;
    };
    let (mut parts, body) = request.into_parts();
    parts.uri = uri;
    let own = next.run(Request::from_parts(parts, body)).await;
    if own.status() != StatusCode::OK {
        return own;
    }
    let bytes = axum::body::to_bytes(own.into_body(), usize::MAX).await.unwrap_or_default();
    match serde_json::from_slice(&bytes) {
        Ok(ours) => {
            axum::Json(asked.merge(theirs, ours, &system.letter().unwrap_or_default())).into_response()
        }
        Err(e) => Refused::from(RequestRefusal::EventsNotUnderstood { error: e.to_string() }).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_a_head_or_its_machine_does_not_go_on() {
        for path in ["session", "topology.svg", "explain", "drives/%2Fdev%2Fsda/locate"] {
            assert!(is_own(&format!("/api/v1/{path}")), "{path}");
        }
        for path in ["drives", "drives/locate", "drives/x/shape", "status", "history", "history/drives/x"] {
            assert!(!is_own(&format!("/api/v1/{path}")), "{path}");
        }
    }

    #[test]
    fn a_head_that_reaches_nobody_tells_of_itself_alone() {
        for path in ["/api/v1/status", "/api/v1/events", "/api/v1/history", "/metrics"] {
            assert!(is_told_alone(&Method::GET, path) && !is_own(path), "{path}");
        }
        for (method, path) in [
            (Method::POST, "/api/v1/status"),
            (Method::GET, "/api/v1/pools"),
            (Method::POST, "/api/v1/pools"),
            (Method::GET, "/api/v1/volumes"),
            (Method::GET, "/api/v1/history/volumes/tank/v"),
        ] {
            assert!(!is_told_alone(&method, path), "{method} {path}");
        }
    }
}
