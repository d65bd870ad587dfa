//! Who may do what, and what a host refuses to be reached by.

use std::fs;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::http::{Api, url};
use keyrail_tests::{run_in, wait_until};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{counted, host, token};

#[test]
fn a_token_is_good_for_its_roles_and_for_nothing_else() {
    let redis = RedisServer::start().unwrap();
    let folder = TempDir::new().unwrap();
    let tokens = folder.path().join("tokens.toml");
    let roles = ["publish", "read", "operate", "deploy"];
    let shown = roles.map(|role| token(folder.path(), &format!("{role}er"), &[role]));
    let text = fs::read_to_string(&tokens).unwrap();
    assert!(shown.iter().all(|token| !text.contains(token)), "the file holds no token");
    let file = format!("http.tokens_file={}", tokens.display());
    let host = host(&redis.url(), &["--set", &file, "--set", "http.files_check_interval_ms=50"]);
    let url = url(&host);
    let by = json!({ "who": "somebody", "reason": "a test" });
    let requests: Vec<(&str, Method, &str, Value)> = vec![
        ("publish", Method::POST, "/v1/events", counted("a", "1")),
        ("publish", Method::POST, "/v1/publish", Value::Null),
        ("read", Method::GET, "/v1/partitions", Value::Null),
        ("read", Method::GET, "/v1/handlers", Value::Null),
        ("operate", Method::POST, "/v1/categories/count/pause", json!({ "key": "z", "by": by })),
        ("deploy", Method::POST, "/v1/register", json!({ "handlers": [] })),
        ("deploy", Method::POST, "/v1/handlers/none/undeploy", json!({ "by": by })),
    ];
    for (role, method, path, body) in &requests {
        for (own, token) in roles.iter().zip(&shown) {
            let api = Api::new(&url).token(token);
            let answer = api.send(api.request(method.clone(), path).json(body));
            assert_eq!(answer.status.as_u16() != 403, own == role, "{own} {path}: {answer:#?}");
        }
        for (token, says) in [("", "Bearer"), ("keyrail_wrong", "unknown or has expired")] {
            let api = Api::new(&url).token(token);
            let answer = api.send(api.request(method.clone(), path).json(body));
            answer.refused(401, "unauthorized", says);
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
    for open in ["/health/live", "/openapi.json", "/ui/x"] {
        assert_ne!(Api::new(&url).get(open).status.as_u16(), 401, "{open}");
    }
    // The record says whose token it was, whatever the request says.
    let audit = Api::new(&url).token(&shown[1]).get("/v1/audit").ok();
    assert_eq!(audit["rows"][0]["who"], "operateer (somebody)", "{audit}");

    let reader = Api::new(&url).token(&shown[1]);
    fs::write(&tokens, "rubbish").unwrap();
    wait_until("the mistake is told", || host.log().contains("stay in force"));
    reader.get("/v1/members").ok();
    fs::remove_file(&tokens).unwrap();
    let other = token(folder.path(), "other", &["read"]);
    let other = Api::new(&url).token(&other);
    wait_until("the new token is good", || other.get("/v1/members").status.is_success());
    reader.get("/v1/members").refused(401, "unauthorized", "unknown");
}

#[test]
fn every_path_of_the_document_needs_a_token_or_is_known_not_to() {
    let redis = RedisServer::start().unwrap();
    let folder = TempDir::new().unwrap();
    token(folder.path(), "x", &["read"]);
    let file = format!("http.tokens_file={}", folder.path().join("tokens.toml").display());
    let host = host(&redis.url(), &["--set", &file, "--set", "http.requests_per_s_max=0"]);
    let api = Api::of(&host);
    let document = api.get("/openapi.json").ok();
    let open = ["/health/live", "/health/ready", "/health/start"];
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let at = path.replace(['{', '}'], "x");
            let status = api.send(api.request(method.clone(), &at)).status.as_u16();
            assert_eq!(status == 401, !open.contains(&path.as_str()), "{method} {path}: {status}");
            assert!(operation["summary"].is_string(), "{method} {path} says what it is");
            assert_eq!(operation["security"].is_array(), status == 401, "{method} {path}");
            seen += 1;
        }
    }
    assert!(seen > 25, "{seen}");
}

#[test]
fn a_host_that_others_can_reach_does_not_start_without_tokens() {
    let folder = TempDir::new().unwrap();
    let run = |args: &[&str]| {
        let args: Vec<_> = ["--broker", "memory", "run", "--until-idle"].iter().chain(args).copied().collect();
        run_in(folder.path(), &args, "")
    };
    run(&["--set", "http.listen=0.0.0.0:0"]).refused(2, "keyrail token NAME");
    run(&["--set", "http.listen=nowhere"]).refused(2, "give auto, off, or an address");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http.listen={}", taken.local_addr().unwrap());
    run(&["--set", &at]).refused(1, "give another address in http.listen");
    run(&["--set", "http.tokens_file=missing.toml"]).refused(1, "missing.toml");
    run(&["--set", "http.tls_cert_file=a.pem", "--set", "http.tls_key_file=b.pem"]).refused(1, "a.pem");
    fs::write(folder.path().join("tokens.toml"), "[[token]]\nname = \"a\"\n").unwrap();
    run(&["--set", "http.tokens_file=tokens.toml"]).refused(1, "roles");
}

#[test]
fn a_page_of_another_site_is_not_answered_where_there_are_no_tokens() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &[]);
    let api = Api::of(&host);
    let foreign = api.request(Method::POST, "/v1/events").header("origin", "http://evil.example");
    api.send(foreign.json(&counted("a", "1"))).refused(403, "forbidden", "http.allowed_hosts");
    let rebound = api.request(Method::GET, "/v1/partitions").header("host", "evil.example");
    api.send(rebound).refused(403, "forbidden", "http.allowed_hosts");
    api.send(api.request(Method::GET, "/v1/partitions").header("origin", &api.url)).ok();
}
