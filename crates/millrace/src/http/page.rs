//! The page (docs/rfcs/0015-page.md): files that are built from `web/` and lie in this program.

use super::Refused;
use super::extract::decode;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base::codec::hex;
use finding::RequestRefusal;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::sync::OnceLock;

/// What a browser must not do with the page: nothing comes from elsewhere, goes elsewhere, or is framed by others.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page.
struct File {
    /// Below `/assets/`; empty for the page itself.
    name: &'static str,
    kind: &'static str,
    plain: &'static [u8],
    /// Made when somebody first asks for it.
    made: OnceLock<Made>,
}

/// What follows from a file's content.
struct Made {
    zipped: Vec<u8>,
    hash: String,
}

impl File {
    const fn new(name: &'static str, kind: &'static str, plain: &'static [u8]) -> Self {
        Self { name, kind, plain, made: OnceLock::new() }
    }

    fn made(&self) -> &Made {
        self.made.get_or_init(|| {
            let mut zip = GzEncoder::new(Vec::new(), Compression::best());
            let zipped = zip.write_all(self.plain).and_then(|()| zip.finish());
            let hash = hex(&Sha256::digest(self.plain)[..16]);
            Made { zipped: zipped.expect("memory takes what is written"), hash }
        })
    }
}

static INDEX: File =
    File::new("", "text/html; charset=utf-8", include_bytes!("../../../../web/dist/index.html"));
static ASSETS: [File; 3] = [
    File::new(
        "app.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../../web/dist/assets/app.js"),
    ),
    File::new("app.css", "text/css; charset=utf-8", include_bytes!("../../../../web/dist/assets/app.css")),
    File::new("icon.svg", "image/svg+xml", include_bytes!("../../../../web/dist/assets/icon.svg")),
];

/// Whether a path is one of the page: text, and not the API's.
pub fn is_page(path: &str) -> bool {
    let is_api = path == "/metrics" || path == "/api" || path.starts_with("/api/");
    !is_api && decode(path).is_some()
}

/// What is answered to a GET of such a path. The page shows itself what `#` names, so that all paths but those of assets are it.
pub fn answer(path: &str, headers: &HeaderMap) -> Response {
    let file = match path.strip_prefix("/assets/") {
        None => Some(&INDEX),
        Some(name) => ASSETS.iter().find(|f| f.name == name),
    };
    let mut response = match file {
        Some(file) => file_answer(file, headers),
        None => {
            not_kept(Refused::from(RequestRefusal::ResourceUnknown { path: path.into() }).into_response())
        }
    };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn file_answer(file: &'static File, headers: &HeaderMap) -> Response {
    let made = file.made();
    // What is not worth it stays as it is.
    let zips = takes_gzip(headers) && made.zipped.len() < file.plain.len();
    let tag = format!("\"{}{}\"", made.hash, if zips { "-gzip" } else { "" });
    let body: &'static [u8] = if zips { &file.made().zipped } else { file.plain };
    let response = Response::builder()
        .header(header::CACHE_CONTROL, "no-cache")
        .header(header::VARY, "accept-encoding")
        .header(header::ETAG, &tag);
    let response = if is_known(headers, &tag) {
        response.status(StatusCode::NOT_MODIFIED).body(Body::empty())
    } else {
        let response = response.header(header::CONTENT_TYPE, file.kind);
        let response = if zips { response.header(header::CONTENT_ENCODING, "gzip") } else { response };
        response.body(Body::from(body))
    };
    response.expect("headers of plain characters")
}

/// The parts of a header that is a list.
fn parts(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// Whether whoever asks takes gzip (RFC 9110 12.5.3); one that is silent about it is not sent any.
fn takes_gzip(headers: &HeaderMap) -> bool {
    parts(headers, header::ACCEPT_ENCODING).any(|part| {
        let mut words = part.split(';').map(str::trim);
        let is_gzip = words.next().is_some_and(|w| w.eq_ignore_ascii_case("gzip"));
        let refused = words.filter_map(|w| w.strip_prefix("q=")).any(|q| q.parse() == Ok(0.0));
        is_gzip && !refused
    })
}

/// Whether whoever asks has this already (RFC 9110 13.1.2).
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    parts(headers, header::IF_NONE_MATCH).any(|part| part == "*" || part.trim_start_matches("W/") == tag)
}

/// An answer of the API: nobody keeps it, and it is nothing else than it says.
pub fn not_kept(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn with(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    fn body(response: Response) -> Vec<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(axum::body::to_bytes(response.into_body(), usize::MAX)).expect("a body").to_vec()
    }

    #[test]
    fn files_come_as_they_are_or_zipped_and_only_once() {
        let plain = answer("/assets/app.js", &with(&[]));
        assert_eq!(plain.headers()[header::CONTENT_TYPE], "text/javascript; charset=utf-8");
        assert_eq!(plain.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
        let tag = plain.headers()[header::ETAG].clone();
        assert_eq!(body(plain), ASSETS[0].plain);
        let mut again = with(&[]);
        again.insert(header::IF_NONE_MATCH, tag);
        let known = answer("/assets/app.js", &again);
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(known.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        again.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"other\""));
        assert_eq!(answer("/assets/app.js", &again).status(), StatusCode::OK);

        let zipped = answer("/", &with(&[(header::ACCEPT_ENCODING, "br, gzip;q=0.5")]));
        assert_eq!(zipped.headers()[header::CONTENT_ENCODING], "gzip");
        let mut page = vec![];
        flate2::read::GzDecoder::new(&body(zipped)[..]).read_to_end(&mut page).expect("gzip");
        assert_eq!(page, INDEX.plain);
        let refused = answer("/", &with(&[(header::ACCEPT_ENCODING, "gzip;q=0, br")]));
        assert!(!refused.headers().contains_key(header::CONTENT_ENCODING));
    }

    #[test]
    fn all_of_the_page_takes_less_than_300_kb_on_its_way() {
        let bytes: usize = ASSETS.iter().chain([&INDEX]).map(|file| file.made().zipped.len()).sum();
        assert!(bytes < 300_000, "{bytes}");
    }

    #[test]
    fn what_is_not_the_api_is_the_page_but_for_assets_that_are_none() {
        for path in ["/", "/index.html", "/pools/tank", "/apix", "/%61pi/v1/status"] {
            assert!(is_page(path), "{path}");
            assert_eq!(answer(path, &with(&[])).headers()[header::CONTENT_TYPE], INDEX.kind, "{path}");
        }
        for path in ["/api", "/api/v1/status", "/api/", "/metrics", "/%ff"] {
            assert!(!is_page(path), "{path}");
        }
        let none = answer("/assets/../../etc/passwd", &with(&[]));
        assert_eq!(none.status(), StatusCode::NOT_FOUND);
        assert_eq!(none.headers()[header::CACHE_CONTROL], "no-store");
    }
}
