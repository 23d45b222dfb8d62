//! Sessions of pages: a token is shown once, and a cookie from then on (docs/rfcs/0015-page.md).

use super::access::{Permission, access_of, now_s, shown};
use super::extract::Body;
use super::{Api, Refused};
use crate::access::{Asking, Peer};
use api::{ErrorBody, Session, SessionBegin, Time};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::{Extension, Json};
use finding::{Asker, SystemEvent};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where the session of whoever asks is.
pub const PATH: &str = "/api/v1/session";
/// The cookie's name.
const COOKIE: &str = "millrace";

/// The resource of sessions.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(get_session, begin_session, end_session))
}

/// The cookie of a request, if it has one of ours.
pub fn cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value).filter(|value| !value.is_empty())
}

/// The header that sets the cookie, or takes it away.
fn set_cookie(value: &str, api: &Api, peer: &Peer) -> [(HeaderName, String); 1] {
    let tls = api.process.access.as_ref().is_some_and(|a| a.certificate.is_some());
    let secure = if tls && peer.ip().is_some() { "; Secure" } else { "" };
    let ends = if value.is_empty() { "; Max-Age=0" } else { "" };
    [(header::SET_COOKIE, format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{ends}"))]
}

/// When the token of this name expires.
fn expiry(api: &Api, name: &str) -> Option<u64> {
    let tokens = access_of(api).ok()?.tokens.list().ok()?;
    tokens.into_iter().find(|t| t.name == name)?.expires.map(|t| t.0)
}

/// Who asks, what is allowed, and until when
#[utoipa::path(get, path = "/session", tag = "tokens",
    responses((status = 200, description = "As it is now", body = Session), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_session(
    State(api): State<Api>,
    Extension(asking): Extension<Asking>,
    Extension(permission): Extension<Permission>,
) -> Json<Session> {
    let (name, token_ends) = match asking.who {
        Asker::ApiToken { name } => {
            let ends = expiry(&api, &name);
            (name, ends)
        }
        Asker::LocalUser { name, .. } => (name, None),
        Asker::OtherHead { head } => (head, None),
    };
    let expires = permission.session_ends.into_iter().chain(token_ends).min().map(Time);
    Json(Session { name, rights: permission.rights, expires })
}

/// Begin a session by showing a token, as pages do: the answer sets a cookie
#[utoipa::path(post, path = "/session", tag = "tokens", request_body = SessionBegin,
    responses((status = 201, description = "Whose it is; the cookie `millrace` counts from now on", body = Session), (status = "default", description = "Why not", body = ErrorBody)))]
async fn begin_session(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    asking: Option<Extension<Asking>>,
    Body(body): Body<SessionBegin>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Session>), Refused> {
    let access = access_of(&api)?;
    let secret = body.token.0.trim();
    let (name, rights) = shown(&api, access, peer.ip(), secret).await?;
    let (cookie, ends) = access.sessions.begin(secret, now_s())?;
    if asking.is_none() {
        // Nobody had a name before: the line that each order leaves is written here.
        let (who, from) = (Asker::ApiToken { name: name.clone() }, peer.ip().map(|ip| ip.to_string()));
        let (method, path) = ("POST".into(), PATH.into());
        api.happened(SystemEvent::OrderDone { who, from, method, path, refused: None }).await;
    }
    let expires = Some(Time(expiry(&api, &name).map_or(ends, |token| token.min(ends))));
    let set = set_cookie(&cookie, &api, &peer);
    Ok((StatusCode::CREATED, set, Json(Session { name, rights, expires })))
}

/// End the session of the cookie that is shown
#[utoipa::path(delete, path = "/session", tag = "tokens",
    responses((status = 204, description = "The cookie is worth nothing any more"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn end_session(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> (StatusCode, [(HeaderName, String); 1]) {
    if let (Some(access), Some(cookie)) = (&api.process.access, cookie(&headers)) {
        access.sessions.end(cookie);
    }
    (StatusCode::NO_CONTENT, set_cookie("", &api, &peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let found = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, axum::http::HeaderValue::from_static(line));
            }
            cookie(&headers).map(str::to_string)
        };
        assert_eq!(found(&["a=b; millrace=1f; c=d"]).as_deref(), Some("1f"));
        assert_eq!(found(&["a=b", "millrace=2f"]).as_deref(), Some("2f"));
        for none in ["", "millrace=", "millrace", "xmillrace=1", "a=millrace=1"] {
            assert_eq!(found(&[none]), None, "{none}");
        }
    }
}
