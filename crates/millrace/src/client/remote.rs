//! A daemon on another machine: its address, how its certificate is known, and the token that is shown to it.

use crate::access::{Stream, Verifier};
use finding::ClientFault;
use hyper::http::request::Builder;
use rustls::pki_types::ServerName;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The file with the secret of a token.
const TOKEN_FILE: &str = "MILLRACE_TOKEN_FILE";
/// The file with the certificate of a CA.
const CA_FILE: &str = "MILLRACE_CA_FILE";

/// How a daemon elsewhere is reached.
pub struct Remote {
    /// As it was given.
    pub url: String,
    /// Name and port.
    authority: String,
    /// The name alone, for the certificate.
    name: String,
    /// None: no TLS.
    verifier: Option<Arc<Verifier>>,
    secret: Option<String>,
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// The parts of a URL: whether it is protected, name and port together, the name alone.
fn parse(url: &str) -> Option<(bool, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let protected = match scheme {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let (name, port) = authority.rsplit_once(':')?;
    let plain = !authority.contains(|c: char| c.is_whitespace() || c.is_control() || "/@?#".contains(c));
    let name = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    (plain && !name.is_empty() && port.parse::<u16>().is_ok()).then_some((protected, authority, name))
}

impl Remote {
    /// By its URL, the fingerprint of its certificate, and what the environment says.
    pub fn new(url: &str, fingerprint: Option<&str>) -> Result<Self, ClientFault> {
        let Some((protected, authority, name)) = parse(url) else {
            return Err(ClientFault::UrlInvalid { url: url.into() });
        };
        let here = name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !protected && !here {
            return Err(ClientFault::UrlUnprotected { url: url.into() });
        }
        let invalid = |setting: &str, error: String| ClientFault::RemoteSettingInvalid {
            setting: setting.into(),
            error,
        };
        let ca = variable(CA_FILE);
        let setting = if fingerprint.is_some() { "--fingerprint" } else { CA_FILE };
        let verifier = Verifier::new(fingerprint, ca.as_deref()).map_err(|e| invalid(setting, e))?;
        let secret = variable(TOKEN_FILE).map(|path| secret(&path)).transpose();
        Ok(Self {
            url: url.into(),
            authority: authority.into(),
            name: name.into(),
            verifier: protected.then_some(verifier),
            secret: secret.map_err(|e| invalid(TOKEN_FILE, e))?,
        })
    }

    /// A connection to it.
    pub async fn connect(&self) -> Result<Box<dyn Stream>, ClientFault> {
        let unreached =
            |e: std::io::Error| ClientFault::UrlUnreached { url: self.url.clone(), error: e.to_string() };
        let stream = TcpStream::connect(&self.authority).await.map_err(unreached)?;
        let Some(verifier) = &self.verifier else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.name.clone());
        let name = name.map_err(|_| ClientFault::UrlInvalid { url: self.url.clone() })?;
        match TlsConnector::from(verifier.config()).connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(e) => Err(match verifier.refused() {
                Some(fingerprint) if let Some(named) = verifier.pin() => {
                    ClientFault::CertificateOther { url: self.url.clone(), fingerprint, named: named.into() }
                }
                Some(fingerprint) => ClientFault::CertificateUnknown {
                    url: self.url.clone(),
                    fingerprint,
                    error: e.to_string(),
                },
                None => unreached(e),
            }),
        }
    }

    /// What each request says beside what it asks for.
    pub fn headers(&self, request: Builder) -> Builder {
        let request = request.header("host", &self.authority);
        match &self.secret {
            Some(secret) => request.header("authorization", format!("Bearer {secret}")),
            None => request,
        }
    }
}

/// The secret in a file.
fn secret(path: &Path) -> Result<String, String> {
    let text = crate::config::read_text(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_name_and_a_port_and_no_secret_leaves_in_clear() {
        assert_eq!(parse("https://a.example:8420/"), Some((true, "a.example:8420", "a.example")));
        assert_eq!(parse("http://[::1]:80"), Some((false, "[::1]:80", "::1")));
        for bad in [
            "",
            "a:1",
            "ftp://a:1",
            "https://a",
            "https://:1",
            "https://a:x",
            "https://u@a:1",
            "https://a:1/x",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        let fault = |url: &str| Remote::new(url, None).err().expect(url);
        assert!(matches!(fault("http://10.0.0.1:8420"), ClientFault::UrlUnprotected { .. }));
        assert!(Remote::new("http://127.0.0.1:8420", None).is_ok());
    }
}
