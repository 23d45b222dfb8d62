//! Who a request is of, what that one may do, and the line that each order leaves (docs/rfcs/0013-tokens.md,
//! docs/rfcs/0015-page.md).

use super::extract::{Body, Params};
use super::{Api, Asked, Refused, page, session};
use crate::access::{Access, Asking, Backoff, Denied, Peer, TOKENS_PATIENCE, is_named, is_own_origin};
use api::{ErrorBody, Rights, Time, TokenAdd, TokenAdded, Tokens};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use finding::{Asker, RequestRefusal, SystemEvent, Why};
use head::order::Order;
use std::net::IpAddr;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Characters of a path that an event keeps.
const PATH_MAX: usize = 200;

/// An answer waits no longer for its event: a daemon that stops gives answers 200 ms.
const TOLD_WITHIN: Duration = Duration::from_millis(100);

/// The code of a refusal, kept with its answer for the event.
#[derive(Clone)]
pub struct Code(pub String);

/// The resources below `/api/v1/tokens`.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_tokens, add_token)).routes(routes!(remove_token))
}

/// What decides who may use this API.
pub fn access_of(api: &Api) -> Result<&Arc<Access>, Refused> {
    api.process.access.as_ref().ok_or_else(|| finding::SystemRefusal::SystemUnsupported.into())
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The tokens of the API, without their secrets
#[utoipa::path(get, path = "/tokens", tag = "tokens",
    responses((status = 200, description = "As it is now", body = Tokens), (status = "default", description = "Why not", body = ErrorBody)))]
async fn list_tokens(State(api): State<Api>, params: Params) -> Result<Json<Tokens>, Refused> {
    params.end()?;
    let access = access_of(&api)?;
    let address = access.tcp.map(|a| a.to_string());
    let fingerprint = access.certificate.as_ref().map(crate::access::Certificate::fingerprint);
    Ok(Json(Tokens { tokens: access.tokens.list()?, address, fingerprint }))
}

/// Make a token; the answer alone has its secret
#[utoipa::path(post, path = "/tokens", tag = "tokens", request_body = TokenAdd,
    responses((status = 201, description = "Its secret", body = TokenAdded), (status = "default", description = "Why not", body = ErrorBody)))]
async fn add_token(
    State(api): State<Api>,
    Body(body): Body<TokenAdd>,
) -> Result<(StatusCode, Json<TokenAdded>), Refused> {
    let (secret, now) = (crate::access::new_secret()?, now_s());
    let (add, of) = (body.clone(), secret.clone());
    write_tokens(&api, move |tokens| tokens.add(&add, &of, now)).await?;
    let expires = body.expires_seconds.map(|s| Time(now + s).to_string());
    api.happened(SystemEvent::TokenAdded { name: body.name, rights: body.rights.word().into(), expires })
        .await;
    Ok((StatusCode::CREATED, Json(TokenAdded { secret })))
}

/// Remove a token: it is refused from now on
#[utoipa::path(delete, path = "/tokens/{name}", tag = "tokens",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 204, description = "It is gone"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn remove_token(State(api): State<Api>, Path(name): Path<String>) -> Result<StatusCode, Refused> {
    write_tokens(&api, move |tokens| tokens.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn write_tokens(
    api: &Api,
    write: impl FnOnce(&crate::access::Tokens) -> Result<(), RequestRefusal> + Send + 'static,
) -> Result<(), Refused> {
    let tokens = Arc::clone(&access_of(api)?.tokens);
    let writer = Arc::clone(&tokens);
    let written = tokio::task::spawn_blocking(move || write(&writer));
    match tokio::time::timeout(TOKENS_PATIENCE, written).await {
        Ok(written) => Ok(written.unwrap_or_else(|_| Err(tokens.silent()))?),
        Err(_) => Err(tokens.silent().into()),
    }
}

fn only_reads(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// What an admitted request may do.
#[derive(Clone, Copy)]
pub struct Permission {
    /// Of the token, now.
    pub rights: Rights,
    /// When the session ends, seconds since 1970; None without one.
    pub session_ends: Option<u64>,
}

/// How a request goes on.
enum Pass {
    /// It asks for the page, which holds nothing secret.
    Page,
    /// It begins a session.
    Login,
    /// It is somebody's.
    As(Asking, Permission),
}

/// In front of everything: who asks, and whether that one may. What came by the link was asked about by the other head.
pub async fn admit(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let Some(peer) = request.extensions().get::<Peer>().cloned() else { return next.run(request).await };
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let response = match admitted(&api, &peer, (method, uri, headers)).await {
        // It never comes to the routes, for which somebody must be asked.
        Ok(Pass::Page) => return page::answer(uri.path(), headers),
        Ok(Pass::Login) => next.run(request).await,
        Ok(Pass::As(asking, permission)) => {
            request.extensions_mut().insert(asking);
            request.extensions_mut().insert(permission);
            next.run(request).await
        }
        Err(why) => {
            if let Some(who) = asker_of(&why).filter(|_| !only_reads(method)) {
                let (from, refused) =
                    (peer.ip().map(|ip| ip.to_string()), Some(Why::from(why.clone()).code()));
                let (method, path) = (method.to_string(), kept(uri.path()));
                api.happened(SystemEvent::OrderDone { who, from, method, path, refused }).await;
            }
            Refused::from(why).into_response()
        }
    };
    page::not_kept(response)
}

/// Who gave an order that was not admitted, if that is known.
fn asker_of(why: &RequestRefusal) -> Option<Asker> {
    match why {
        RequestRefusal::TokenExpired { name, .. } | RequestRefusal::TokenReadOnly { name } => {
            Some(Asker::ApiToken { name: name.clone() })
        }
        _ => None,
    }
}

async fn admitted(
    api: &Api,
    peer: &Peer,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
) -> Result<Pass, RequestRefusal> {
    let access = api.process.access.as_ref();
    let (reads, path) = (only_reads(method), uri.path());
    let is_page = reads && page::is_page(path);
    if let (Some(ip), Some(access), false) = (peer.ip(), access, is_page) {
        not_throttled(access, ip)?;
    }
    let origin = headers.get(header::ORIGIN).map(|o| o.to_str().unwrap_or("null"));
    not_of_another_site(peer, access, host_of(uri, headers), origin.filter(|_| !reads))?;
    if is_page {
        return Ok(Pass::Page);
    }
    let Some(ip) = peer.ip() else {
        let Peer::User(uid) = *peer else { return Err(RequestRefusal::TokenWrong) };
        let permission = Permission { rights: Rights::Full, session_ends: None };
        return Ok(Pass::As(Asking::user(uid), permission));
    };
    let Some(access) = access else { return Err(RequestRefusal::TokenWrong) };
    let is_session = path == session::PATH;
    if is_session && method == Method::POST {
        return Ok(Pass::Login);
    }
    let (name, permission) = match (secret_of(headers), session::cookie(headers)) {
        (Some(secret), _) => {
            let (name, rights) = shown(api, access, Some(ip), secret).await?;
            (name, Permission { rights, session_ends: None })
        }
        (None, Some(_)) if !reads && origin.is_none() => {
            return Err(RequestRefusal::OriginForeign { origin: String::new() });
        }
        (None, Some(cookie)) => in_session(access, cookie)?,
        (None, None) => return Err(RequestRefusal::TokenWrong),
    };
    // Whoever may only read may end the own session all the same.
    if !reads && !is_session && permission.rights == Rights::Read {
        return Err(RequestRefusal::TokenReadOnly { name });
    }
    Ok(Pass::As(Asking { who: Asker::ApiToken { name }, from: Some(ip.to_string()) }, permission))
}

/// Refuses what calls the head by a name that it was not given, as the page of a site does whose name leads here by its DNS, and
/// orders that the page of another site sent: `origin` is that of an order.
fn not_of_another_site(
    peer: &Peer,
    access: Option<&Arc<Access>>,
    host: &str,
    origin: Option<&str>,
) -> Result<(), RequestRefusal> {
    let is_local = peer.ip().is_none();
    // At the socket programs call the head what they like; a name that DNS led here has a dot in it.
    let may_be_any = is_local && !host.contains('.');
    if !may_be_any && !is_named(host, access.map_or(&[], |a| &a.names)) {
        return Err(RequestRefusal::HeadNameUnknown { name: host.into() });
    }
    let tls = !is_local && access.is_some_and(|a| a.certificate.is_some());
    match origin {
        Some(origin) if !is_own_origin(origin, host, tls) => {
            Err(RequestRefusal::OriginForeign { origin: origin.into() })
        }
        _ => Ok(()),
    }
}

fn backoff(access: &Access) -> MutexGuard<'_, Backoff> {
    access.backoff.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses what comes from an address that showed too many wrong tokens.
fn not_throttled(access: &Access, ip: IpAddr) -> Result<(), RequestRefusal> {
    match backoff(access).left(ip, Instant::now()) {
        Some(left) => Err(RequestRefusal::ApiThrottled { seconds: left.as_secs() + 1 }),
        None => Ok(()),
    }
}

/// The name and the rights of the token with this secret. A wrong one counts for the address that showed it.
pub async fn shown(
    api: &Api,
    access: &Access,
    ip: Option<IpAddr>,
    secret: &str,
) -> Result<(String, Rights), RequestRefusal> {
    match access.tokens.check(secret, now_s()) {
        Ok(found) => {
            if let Some(ip) = ip {
                backoff(access).passed(ip);
            }
            Ok(found)
        }
        Err(Denied::Expired { name, at }) => {
            Err(RequestRefusal::TokenExpired { name, expired: Time(at).to_string() })
        }
        Err(Denied::Unknown) => {
            let told = ip.and_then(|ip| Some((ip, backoff(access).failed(ip, Instant::now())?)));
            if let Some((ip, failures)) = told {
                api.happened(SystemEvent::ApiAccessThrottled { from: ip.to_string(), failures }).await;
            }
            Err(RequestRefusal::TokenWrong)
        }
    }
}

/// The name of the token of a cookie's session, and what it may do now. One that has ended is not counted as a guess: pages that
/// stay open over a restart show it.
fn in_session(access: &Access, cookie: &str) -> Result<(String, Permission), RequestRefusal> {
    let now = now_s();
    let (token, ends) = access.sessions.find(cookie, now).ok_or(RequestRefusal::SessionEnded)?;
    match access.tokens.check_digest(&token, now) {
        Ok((name, rights)) => Ok((name, Permission { rights, session_ends: Some(ends) })),
        Err(Denied::Expired { name, at }) => {
            Err(RequestRefusal::TokenExpired { name, expired: Time(at).to_string() })
        }
        Err(Denied::Unknown) => {
            access.sessions.end(cookie);
            Err(RequestRefusal::SessionEnded)
        }
    }
}

/// What the request calls this head (RFC 9112 3.2.2: the URI's name counts before the header's).
fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> &'a str {
    let header = || headers.get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or_default();
    uri.authority().map_or_else(header, |a| a.as_str())
}

/// What stands behind `Authorization: Bearer`.
fn secret_of(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = shown.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim()).filter(|s| !s.is_empty())
}

/// As much of a path as an event keeps.
fn kept(path: &str) -> String {
    path.chars().take(PATH_MAX).collect()
}

/// Next to the routes: what changes something leaves an event on the head that was to do it.
pub async fn audit(State(api): State<Api>, request: Request, next: Next) -> Response {
    if only_reads(request.method()) {
        return next.run(request).await;
    }
    let other =
        |asked: &Asked| Asking { who: Asker::OtherHead { head: asked.0.letter().into() }, from: None };
    let asking = request.extensions().get::<Asking>().cloned();
    let Some(asking) = asking.or_else(|| request.extensions().get::<Asked>().map(other)) else {
        return next.run(request).await;
    };
    let method = request.method().to_string();
    let path = kept(request.uri().path());
    // On a task of its own: whoever hangs up meanwhile does not end the order, and is on record all the same.
    let task = tokio::spawn(async move {
        let response = next.run(request).await;
        let code = response.extensions().get::<Code>().map(|c| c.0.clone());
        let refused = (!response.status().is_success())
            .then(|| code.unwrap_or_else(|| response.status().as_u16().to_string()));
        let Asking { who, from } = asking;
        api.happened(SystemEvent::OrderDone { who, from, method, path, refused }).await;
        response
    });
    task.await.unwrap_or_else(|_| Refused::from(RequestRefusal::AnswerOfAnother).into_response())
}

impl Api {
    /// Tells the head what happened at its API. One that is stopping is past it, and does not keep an answer from going out.
    pub async fn happened(&self, event: SystemEvent) {
        let told = self.door.call(Order::Happened { event: Box::new(event) });
        let _ = tokio::time::timeout(TOLD_WITHIN, told).await;
    }
}
