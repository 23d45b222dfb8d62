//! The OpenAPI document, held against what is served.

use super::*;

#[test]
fn the_document_knows_every_resource_and_every_shape() {
    let fake = fake();
    let document: serde_json::Value = fake.client.get("/openapi.json").expect("answered");
    assert_eq!(document, serde_json::from_str::<serde_json::Value>(&openapi_json()).expect("JSON"));
    assert!(document["openapi"].as_str().expect("a version").starts_with("3.1"));
    let paths: Vec<&str> = document["paths"].as_object().expect("paths").keys().map(String::as_str).collect();
    for path in ["/api/v1/status", "/api/v1/drives/{drive}/shape", "/api/v1/exports/{pool}/{volume}/{host}"] {
        assert!(paths.contains(&path), "{paths:?}");
    }
    valid(&document);
    expect_test::expect_file!["../openapi.json"].assert_eq(&(openapi_json() + "\n"));
    let text = document.to_string();
    assert!(text.contains("ErrorBody") && text.contains("HostSet"));
    drop(fake.folder);
}

/// What OpenAPI 3.1 asks of a document like ours.
fn valid(document: &serde_json::Value) {
    for reference in document.to_string().split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().expect("quoted");
        assert!(document["components"]["schemas"][name].is_object(), "{name} is not described");
    }
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut ids = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        assert!(path.starts_with('/'), "{path}");
        let in_path: Vec<&str> =
            path.split('{').skip(1).map(|p| p.split('}').next().expect("closed")).collect();
        for (method, operation) in item.as_object().expect("operations") {
            let what = format!("{method} {path}");
            assert!(["get", "put", "post", "delete", "patch"].contains(&method.as_str()), "{what}");
            let id = operation["operationId"].as_str().expect("an id").to_string();
            assert!(ids.insert(id), "{what}: its id is taken");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let mut named: Vec<&str> = parameters
                .iter()
                .filter(|p| p["in"] == "path")
                .map(|p| p["name"].as_str().expect("a name"))
                .collect();
            named.sort_by_key(|n| in_path.iter().position(|p| p == n));
            assert_eq!(named, in_path, "{what}");
            for p in &parameters {
                assert!(p["schema"].is_object() || p["content"].is_object(), "{what}: {p}");
                assert!(p["in"] != "path" || p["required"] == true, "{what}: {p}");
            }
            let responses = operation["responses"].as_object().expect("responses");
            assert!(!responses.is_empty(), "{what}");
            for (code, response) in responses {
                assert!(
                    code == "default" || code.parse::<u16>().is_ok_and(|c| (200..600).contains(&c)),
                    "{what}"
                );
                assert!(response["description"].is_string(), "{what} {code}");
            }
        }
    }
}

#[test]
fn every_route_is_in_the_document_and_every_path_of_it_is_served() {
    // Routes are added together with their description, and nowhere else.
    for text in [include_str!("../mod.rs"), include_str!("../resources.rs")] {
        assert!(!text.contains(concat!(".rou", "te(")), "a route without a description");
    }
    let source = include_str!("../resources.rs");
    assert_eq!(source.matches("#[utoipa::path(").count(), source.matches("\nasync fn ").count() - 1);
    let fake = fake();
    let document: serde_json::Value = serde_json::from_str(&openapi_json()).expect("JSON");
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("operations").keys() {
            let place = path.replace(['{', '}'], "");
            let method = method.to_uppercase();
            let (status, body) = raw(
                &fake,
                &format!(
                    "{method} {place} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
                ),
            );
            assert!(
                status != 405 && !body.contains("there is no resource"),
                "{method} {place}: {status} {body}"
            );
        }
    }
}

#[test]
fn metrics_are_served_beside_the_api() {
    let (status, body) = raw(&fake(), "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_eq!(status, 200);
    assert!(body.contains("millrace_volume_reads_total{volume=\"tank/vm1\"} 12345678"), "{body}");
}
