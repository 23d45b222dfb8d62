//! Bodies and parameters of requests; a refusal names the field.

use super::Refused;
use crate::words::{Wrong, read as read_parser};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use finding::RequestRefusal;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;

/// Largest body of a request, bytes.
const BODY_MAX: usize = 1 << 20;
/// Until the whole body is there.
const BODY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// So much of a body that is too large is still read.
const BODY_DRAINED_MAX: usize = 16 << 20;

/// A JSON body; an empty one is `{}`.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let bytes = tokio::time::timeout(BODY_TIMEOUT, read(request.into_body()))
            .await
            .unwrap_or(Err(RequestRefusal::BodyTimedOut { seconds: BODY_TIMEOUT.as_secs() }))?;
        Ok(Body(parse(if bytes.is_empty() { b"{}" } else { &bytes })?))
    }
}

/// The whole body. One that is too long is read to its end all the same (up to a limit), since a client
/// that is still sending would not see the answer.
async fn read(mut body: axum::body::Body) -> Result<Vec<u8>, RequestRefusal> {
    let (mut bytes, mut total) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| RequestRefusal::BodyCut)?;
        if let Ok(data) = frame.into_data() {
            total += data.len();
            if total <= BODY_MAX {
                bytes.extend_from_slice(&data);
            } else if total > BODY_DRAINED_MAX {
                break;
            }
        }
    }
    if total > BODY_MAX { Err(RequestRefusal::BodyTooLong { bytes_max: BODY_MAX as u64 }) } else { Ok(bytes) }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RequestRefusal> {
    let mut input = serde_json::Deserializer::from_slice(bytes);
    let value: T = serde_path_to_error::deserialize(&mut input).map_err(|e| {
        let path = e.path().to_string();
        let inner = e.into_inner();
        if !inner.is_data() {
            return RequestRefusal::BodyNotJson { error: inner.to_string() };
        }
        match read_parser(&inner.to_string()) {
            Wrong::Unknown(field, fields) => RequestRefusal::FieldUnknown { field, fields },
            Wrong::Missing(field) => RequestRefusal::FieldMissing { field },
            Wrong::Twice(field) => RequestRefusal::FieldTwice { field },
            Wrong::Value(error) if [".", "?"].contains(&&*path) => RequestRefusal::BodyInvalid { error },
            Wrong::Value(error) => RequestRefusal::FieldInvalid { field: path, error },
        }
    })?;
    input.end().map_err(|e| RequestRefusal::BodyGoesOn { error: e.to_string() })?;
    Ok(value)
}

/// The parameters of a request, taken one by one.
pub struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            Some((decode(name)?, decode(value)?))
        };
        let query = parts.uri.query().unwrap_or("");
        let pairs: Option<Vec<_>> = query.split('&').filter(|p| !p.is_empty()).map(pair).collect();
        Ok(Params(pairs.ok_or(RequestRefusal::ParametersNotText)?))
    }
}

impl Params {
    /// All values of `name`.
    pub fn all(&mut self, name: &str) -> Vec<String> {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(|(n, _)| n == name);
        self.0 = left;
        let taken: Vec<(String, String)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }
    /// The value of `name`, or `default`.
    pub fn one<T: std::str::FromStr>(&mut self, name: &str, default: T) -> Result<T, Refused> {
        let parameter = name.to_string();
        match &self.all(name)[..] {
            [] => Ok(default),
            [value] => value
                .parse()
                .map_err(|_| RequestRefusal::ParameterInvalid { parameter, value: value.clone() }.into()),
            _ => Err(RequestRefusal::ParameterTwice { parameter }.into()),
        }
    }
    /// Refuses whatever was not taken.
    pub fn end(self) -> Result<(), Refused> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((parameter, _)) => Err(RequestRefusal::ParameterUnknown { parameter }.into()),
        }
    }
}

/// Percent-decoding (RFC 3986 2.1), and `+` for a blank as forms write it.
pub fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                (high * 16 + low) as u8
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::ErrorKind;

    #[test]
    fn a_wrong_body_names_its_field() {
        let check = |text: &str, kind: ErrorKind, field: Option<&str>| {
            let why = parse::<api::PoolCreate>(text.as_bytes()).expect_err(text);
            assert_eq!((why.kind(), why.place()), (kind, field), "{text}: {why:?}");
        };
        check("{", ErrorKind::Malformed, None);
        check("[]", ErrorKind::Invalid, None);
        check(r#"{"name":"a"}"#, ErrorKind::Invalid, Some("arrays"));
        check(r#"{"name":"a","arrays":[],"chunk":1}"#, ErrorKind::Invalid, Some("chunk"));
        check(r#"{"name":"a","arrays":[],"chunk_bytes":-1}"#, ErrorKind::Invalid, Some("chunk_bytes"));
        check(
            r#"{"name":"a","arrays":[{"layout":"raid7","drives":[]}]}"#,
            ErrorKind::Invalid,
            Some("arrays[0].layout"),
        );
        check(r#"{"name":"a","arrays":[]} x"#, ErrorKind::Malformed, None);
    }

    /// What is read is written down as the same; what is not, is refused in a line.
    fn body<T: DeserializeOwned + serde::Serialize + PartialEq>(bytes: &[u8]) {
        match parse::<T>(bytes) {
            Ok(value) => {
                let text = serde_json::to_vec(&value).expect("it was JSON");
                assert!(parse::<T>(&text).is_ok_and(|again| again == value), "another body");
            }
            Err(why) => {
                let Refused(refusal) = why.into();
                let error = crate::words::refusal(&refusal);
                assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error:?}");
            }
        }
    }

    #[test]
    fn fuzz_bodies_and_parameters() {
        let take = |bytes: &[u8]| {
            body::<api::PoolCreate>(bytes);
            body::<api::PoolAdd>(bytes);
            body::<api::PoolImport>(bytes);
            body::<api::PoolScrub>(bytes);
            body::<api::SpareAdd>(bytes);
            body::<api::LegAdd>(bytes);
            body::<api::DriveReplace>(bytes);
            body::<api::DriveLocate>(bytes);
            body::<api::SessionBegin>(bytes);
            body::<api::Shape>(bytes);
            body::<api::VolumeCreate>(bytes);
            body::<api::VolumeSet>(bytes);
            body::<api::HostSet>(bytes);
            body::<api::HostAdd>(bytes);
            body::<api::PortalAdd>(bytes);
            body::<api::ExportAdd>(bytes);
            let _ = decode(&String::from_utf8_lossy(bytes));
        };
        let examples = [
            r#"{"name":"tank","arrays":[{"layout":"mirror","drives":["/dev/a","/dev/b"],"weight":2}],"chunk_bytes":65536,"block_bytes":512,"force":true}"#,
            r#"{"arrays":[{"layout":"single","drives":["ram:1G"]}]}"#,
            r#"{"pool":"tank","drives":["/srv/d1"],"force":false}"#,
            r#"{"action":"start","repair":true}"#,
            r#"{"action":"stop"}"#,
            r#"{"name":"vm2","iops_max":100,"mbps_max":1,"weight":7,"force":true}"#,
            r#"{"new":"/dev/c","force":true}"#,
            r#"{"drive":"/dev/a","mirror":"mirror-0"}"#,
            r#"{"latency_us":5000,"iops_max":1,"mbps_max":2,"read_errors_ppm":3,"write_errors_ppm":4,"hang":true,"gone":false}"#,
            r#"{"name":"tank/vm1","bytes":18446744073709551615,"block_bytes":4096}"#,
            r#"{"name":"esx1","nqns":["nqn.2014-08.org.nvmexpress:uuid:0"],"iqns":["iqn.1998-01.com.vmware:esx1"],"chap_secret":"\u0041correct horse"}"#,
            r#"{"protocol":"iscsi","address":"10.0.0.1:3260"}"#,
            r#"{"volume":"tank/vm1","host":"esx1","lun":1}"#,
            "/dev/disk%2fby-id%20+x",
        ];
        let examples = examples.iter().map(|e| e.as_bytes().to_vec()).collect();
        let target = fuzz::Target { name: "bodies", run: take, examples, mend: |_| {}, bytes_max: 4096 };
        let inputs = fuzz::run(&target, 1, fuzz::limit());
        assert!(inputs > 100, "only {inputs} inputs");
    }

    #[test]
    fn parameters_are_decoded_or_refused() {
        assert_eq!(decode("%2Fdev%2fa+b"), Some("/dev/a b".into()));
        assert_eq!(decode("%2"), None);
        assert_eq!(decode("%zz"), None);
        assert_eq!(decode("%ff"), None);
    }
}
