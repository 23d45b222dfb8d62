//! Who a request is of, what that one may do, and the line that each order leaves (docs/rfcs/0013-tokens.md).

use super::extract::{Body, Params};
use super::{Api, Asked, Refused};
use crate::access::{Access, Asking, Denied, Peer, is_own_origin};
use api::{ErrorBody, Rights, Time, TokenAdd, TokenAdded, Tokens};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use finding::{Asker, RequestRefusal, SystemEvent};
use head::order::Order;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Characters of a path that an event keeps.
const PATH_MAX: usize = 200;

/// The code of a refusal, kept with its answer for the event.
#[derive(Clone)]
pub struct Code(pub String);

/// The resources below `/api/v1/tokens`.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_tokens, add_token)).routes(routes!(remove_token))
}

fn access_of(api: &Api) -> Result<&Arc<Access>, Refused> {
    api.process.access.as_ref().ok_or_else(|| finding::SystemRefusal::SystemUnsupported.into())
}

fn now_s() -> u64 {
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
    let secret = crate::access::new_secret()?;
    access_of(&api)?.tokens.add(&body, &secret, now_s())?;
    Ok((StatusCode::CREATED, Json(TokenAdded { secret })))
}

/// Remove a token: it is refused from now on
#[utoipa::path(delete, path = "/tokens/{name}", tag = "tokens",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 204, description = "It is gone"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn remove_token(State(api): State<Api>, Path(name): Path<String>) -> Result<StatusCode, Refused> {
    access_of(&api)?.tokens.remove(&name)?;
    Ok(StatusCode::NO_CONTENT)
}

fn only_reads(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// In front of everything: who asks, and whether that one may. What came by the link was asked about by the other head.
pub async fn admit(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let asking = match request.extensions().get::<Peer>() {
        None => return next.run(request).await,
        Some(Peer::User(uid)) => Asking::user(*uid),
        Some(Peer::Address(ip)) => {
            let ip = ip.to_canonical();
            match admitted(&api, ip, (request.method(), request.uri(), request.headers())).await {
                Ok(name) => Asking { who: Asker::ApiToken { name }, from: Some(ip.to_string()) },
                Err(why) => return refused(why),
            }
        }
    };
    request.extensions_mut().insert(asking);
    next.run(request).await
}

fn refused(why: RequestRefusal) -> Response {
    let wait = match &why {
        RequestRefusal::ApiThrottled { seconds } => Some(*seconds),
        _ => None,
    };
    let mut response = Refused::from(why).into_response();
    if let Some(seconds) = wait {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The name of the token that a request over TCP shows, if it may do what it asks for.
async fn admitted(
    api: &Api,
    ip: IpAddr,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
) -> Result<String, RequestRefusal> {
    let Some(access) = api.process.access.as_ref() else { return Err(RequestRefusal::TokenWrong) };
    let backoff = || access.backoff.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(left) = backoff().left(ip, Instant::now()) {
        return Err(RequestRefusal::ApiThrottled { seconds: left.as_secs() + 1 });
    }
    let host = host_of(uri, headers);
    if !access.is_named(host) {
        return Err(RequestRefusal::HeadNameUnknown { name: host.into() });
    }
    let Some(secret) = secret_of(headers) else { return Err(RequestRefusal::TokenWrong) };
    let (name, rights) = match access.tokens.check(secret, now_s()) {
        Ok(found) => found,
        Err(Denied::Expired { name, at }) => {
            return Err(RequestRefusal::TokenExpired { name, expired: Time(at).to_string() });
        }
        Err(Denied::Unknown) => {
            let told = backoff().failed(ip, Instant::now());
            if let Some(failures) = told {
                let event = SystemEvent::ApiAccessThrottled { from: ip.to_string(), failures };
                api.happened(event).await;
            }
            return Err(RequestRefusal::TokenWrong);
        }
    };
    backoff().passed(ip);
    if only_reads(method) {
        return Ok(name);
    }
    if rights == Rights::Read {
        return Err(RequestRefusal::TokenReadOnly { name });
    }
    match headers.get(header::ORIGIN).map(|o| o.to_str().unwrap_or("null")) {
        Some(origin) if !is_own_origin(origin, host) => {
            Err(RequestRefusal::OriginForeign { origin: origin.into() })
        }
        _ => Ok(name),
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
    let path: String = request.uri().path().chars().take(PATH_MAX).collect();
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
    /// Tells the head what happened at its API. One that is stopping is past it.
    async fn happened(&self, event: SystemEvent) {
        let _ = self.door.call(Order::Happened { event: Box::new(event) }).await;
    }
}
