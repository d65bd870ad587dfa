//! The HTTP API of real hosts: who may do what, publishing in every form, limits, health, the command line through it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::{Host, freeze, thaw};
use keyrail_tests::http::{Answered, Api, url};
use keyrail_tests::{guest, run_in, wait_until};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

const ANYWHERE: [&str; 2] = ["--set", "http.listen=127.0.0.1:0"];

fn host(broker: &str, args: &[&str]) -> Host {
    let args: Vec<_> = ANYWHERE.iter().chain(args).copied().collect();
    Host::up(broker, &["counter-1"], &args)
}

fn counted(key: &str, id: &str) -> Value {
    json!({ "category": "count", "type": "Counted", "id": id, "data": { "key": key, "n": 1 } })
}

fn post(api: &Api, media: &str, body: impl Into<reqwest::Body>) -> Answered {
    api.send(api.request(Method::POST, "/v1/events").header("content-type", media).body(body))
}

#[test]
fn events_are_published_in_every_form_and_the_same_id_once() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &[]);
    let api = Api::of(&host);

    let one = api.post("/v1/events", &counted("a", "1")).ok();
    assert_eq!(one["events"][0]["id"], "1");
    assert!(one["events"][0]["entry"].as_str().unwrap().ends_with("-0"), "{one}");
    let array = api.post("/v1/events", &json!([counted("a", "2"), counted("b", "3")])).ok();
    assert_eq!(array["events"].as_array().unwrap().len(), 2);
    let lines = format!("{}\n\n{}\n", counted("a", "4"), counted("a", "5"));
    let lines = post(&api, "application/jsonl", lines).ok();
    assert_eq!(lines["events"][1]["id"], "5");

    let cloud = |id: &str| json!({ "specversion": "1.0", "id": id, "source": "/shop", "type": "count.Counted", "data": { "key": "a", "n": 1 } });
    let structured = post(&api, "application/cloudevents+json; charset=utf-8", cloud("6").to_string()).ok();
    assert_eq!(structured["events"][0]["id"], "/shop#6");
    let batch = json!([cloud("7"), cloud("8")]).to_string();
    assert_eq!(post(&api, "application/cloudevents-batch+json", batch).ok()["events"][1]["id"], "/shop#8");
    let binary = api.request(Method::POST, "/v1/events").header("content-type", "application/json");
    let binary = binary.header("ce-specversion", "1.0").header("ce-id", "9%20x").header("ce-source", "/shop");
    let binary = binary.header("ce-type", "count.Counted").body(r#"{"key":"a","n":1}"#);
    assert_eq!(api.send(binary).ok()["events"][0]["id"], "/shop#9 x");

    let again = api.post("/v1/events", &json!([counted("a", "1"), counted("a", "10")])).ok();
    assert_eq!(
        (&again["events"][0]["duplicate"], &again["events"][0]["entry"]),
        (&json!(true), &one["events"][0]["entry"])
    );
    assert_eq!(again["events"][1].get("duplicate"), None);
    let fresh =
        api.post("/v1/events", &json!({ "category": "count", "type": "Counted", "data": { "key": "c", "n": 1 } }));
    assert_eq!(fresh.ok()["events"][0]["id"].as_str().unwrap().len(), 36);
    wait_until("all is settled", || api.get("/v1/backlog").ok()["ready"] == 0);
    let row = api.get("/v1/partitions?category=count").ok();
    let row = row["rows"].as_array().unwrap().iter().find(|row| row["key"] == "a").unwrap().clone();
    // Nine of its own, and the one that was there already.
    assert!(row["last"].as_str().unwrap().ends_with("-8"), "{row}");
    assert_eq!((&row["last"], row["waiting"].as_u64()), (&row["settled"], Some(0)));
}

#[test]
fn one_bad_event_lets_none_be_published_unless_it_is_skipped() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &[]);
    let api = Api::of(&host);
    let bad = json!({ "category": "count", "type": "Counted", "id": "x", "data": { "n": 1 } });
    let mixed = json!([counted("a", "1"), bad, counted("a", "2")]);
    let refused = api.post("/v1/events", &mixed);
    refused.refused(422, "refused", "1 of 3 events");
    assert_eq!((refused.body["events"][0]["id"].as_str(), refused.body["events"][0].get("entry")), (Some("1"), None));
    assert!(refused.body["events"][1]["error"].as_str().unwrap().contains("key"), "{refused:#?}");
    assert_eq!(api.get("/v1/partitions").ok()["rows"], json!([]));

    let partly = api.post("/v1/events?skip_bad=true", &mixed);
    assert_eq!(partly.status.as_u16(), 207);
    let entries: Vec<_> =
        partly.body["events"].as_array().unwrap().iter().map(|event| event.get("entry").is_some()).collect();
    assert_eq!(entries, [true, false, true]);

    for (media, body, status, says) in [
        ("text/plain", "{}", 415, "application/jsonl"),
        ("application/json", "", 400, "no event"),
        ("application/json", "[]", 400, "no event"),
        ("application/json", "[1", 400, "content type"),
        ("application/json", "7", 422, "1 of 1"),
        ("application/json", "{\"category\":\"\\ud800\"}", 422, "1 of 1"),
        ("application/cloudevents+json", "{}", 422, "1 of 1"),
    ] {
        post(&api, media, body).refused(status, "refused", says);
    }
    api.post("/v1/events?skipbad=true", &mixed).refused(400, "refused", "skipbad");
    let none = json!([{ "category": "nothing", "type": "Counted", "data": {} }]);
    let none = api.post("/v1/events", &none);
    assert!(none.body["events"][0]["error"].as_str().unwrap().contains("nothing"), "{none:#?}");
}

#[test]
fn a_request_that_is_too_large_or_too_slow_is_refused_and_the_host_goes_on() {
    let redis = RedisServer::start().unwrap();
    let limits = ["events_max=3", "events_max_bytes=2000", "body_timeout_ms=300", "requests_per_s_max=0"];
    let limits: Vec<_> = limits.iter().flat_map(|limit| ["--set".to_string(), format!("http.{limit}")]).collect();
    let host = host(&redis.url(), &limits.iter().map(String::as_str).collect::<Vec<_>>());
    let api = Api::of(&host);
    let many: Vec<_> = (0..4).map(|n| counted("a", &n.to_string())).collect();
    api.post("/v1/events", &json!(many)).refused(413, "refused", "http.events_max");
    post(&api, "application/json", " ".repeat(2_001)).refused(413, "refused", "http.events_max_bytes");
    api.send(api.request(Method::POST, "/v1/heads/count/retry").body("x")).refused(415, "refused", "");

    let mut slow = TcpStream::connect(api.url.trim_start_matches("http://")).unwrap();
    let head =
        "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{";
    slow.write_all(head.as_bytes()).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = String::new();
    let _ = slow.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("http.body_timeout_ms"), "{answer}");
    api.post("/v1/events", &counted("a", "1")).ok();

    // Of a body that is published as it comes, a part is not taken for the whole.
    let line = counted("b", "2").to_string();
    let mut slow = TcpStream::connect(api.url.trim_start_matches("http://")).unwrap();
    let head = "POST /v1/publish HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 5000\r\n\r\n";
    slow.write_all(format!("{head}{line}\n{{").as_bytes()).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = String::new();
    let _ = slow.read_to_string(&mut answer);
    assert!(answer.contains("\"published\":1") && answer.contains("broke off after line 1"), "{answer}");
}

#[test]
fn who_asks_too_often_is_told_when_to_come_back() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &["--set", "http.requests_per_s_max=5"]);
    let api = Api::of(&host);
    let answers: Vec<_> = (0..50).map(|_| api.get("/health/live")).collect();
    let refused = answers.iter().find(|answer| !answer.status.is_success()).expect("a limit");
    refused.refused(429, "too-many", "http.requests_per_s_max");
    assert_eq!(refused.headers["retry-after"], "1");
    wait_until("it may ask again", || api.get("/health/live").status.is_success());
}

fn token(folder: &Path, name: &str, roles: &[&str]) -> String {
    let roles = roles.iter().flat_map(|role| ["--role", role]);
    let args: Vec<_> = ["token", name, "--file", "tokens.toml"].into_iter().chain(roles).collect();
    run_in(folder, &args, "").ok().out.trim().to_string()
}

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

#[test]
fn health_tells_starting_serving_and_a_broker_that_is_away() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &[]);
    let api = Api::of(&host);
    wait_until("it is ready", || api.get("/health/ready").status.is_success());
    assert_eq!(api.get("/health/start").ok()["status"], "started");
    freeze(redis.pid());
    let away = api.get("/health/ready");
    away.refused(503, "unavailable", "the broker does not answer");
    assert_eq!(away.headers["retry-after"], "1");
    api.get("/health/live").ok();
    thaw(redis.pid());
    wait_until("it is ready again", || api.get("/health/ready").status.is_success());
}

#[test]
fn a_broker_that_is_away_is_told_and_the_same_ids_publish_nothing_twice() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &["--set", "publish.tries_max=2", "--set", "redis.response_timeout_ms=300"]);
    let api = Api::of(&host);
    let events = json!([counted("a", "1"), counted("a", "2")]);
    api.post("/v1/events", &json!([counted("b", "0")])).ok();
    freeze(redis.pid());
    let away = api.post("/v1/events", &events);
    away.refused(503, "unavailable", "does not answer");
    assert!(away.headers.contains_key("retry-after"));
    thaw(redis.pid());
    wait_until("it is published", || api.post("/v1/events", &events).status.is_success());
    wait_until("it is settled", || api.get("/v1/backlog").ok()["ready"] == 0);
    let rows = api.get("/v1/partitions").ok();
    let row = rows["rows"].as_array().unwrap().iter().find(|row| row["key"] == "a").unwrap().clone();
    assert!(row["last"].as_str().unwrap().ends_with("-1"), "{row}");
}

#[test]
fn commands_work_through_a_host_over_tls_with_a_token() {
    let redis = RedisServer::start().unwrap();
    let folder = TempDir::new().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let all = token(folder.path(), "ops", &["publish", "read", "operate", "deploy"]);
    fs::write(folder.path().join("token"), format!("{all}\n")).unwrap();
    let at = |file: &str| folder.path().join(file).display().to_string();
    let host = Host::up(
        &redis.url(),
        &[],
        &[
            "--set",
            "http.listen=127.0.0.1:0",
            "--set",
            &format!("http.tokens_file={}", at("tokens.toml")),
            "--set",
            &format!("http.tls_cert_file={}", at("cert.pem")),
            "--set",
            &format!("http.tls_key_file={}", at("key.pem")),
        ],
    );
    let url = url(&host);
    assert!(url.starts_with("https://"), "{url}");
    let ca = format!("client.ca_file={}", at("cert.pem"));
    let run = |args: &[&str], input: &str| {
        let through = ["--host", url.as_str(), "--token-file", "token", "--set", &ca];
        let args: Vec<_> = through.iter().chain(args).copied().collect();
        run_in(folder.path(), &args, input)
    };
    let deploy = |name: &str| run(&["deploy", guest(name).to_str().unwrap(), "--reason", "a test"], "").ok();
    deploy("counter-1");
    let lines = format!("{}\n{}\n", counted("a", "1"), counted("b", "2"));
    run(&["publish", "-"], &lines).ok();
    wait_until("both are settled", || {
        let rows = run(&["partitions", "--json"], "").ok().out;
        rows.matches("\"waiting\":0").count() == 2
    });
    assert!(run(&["members"], "").ok().out.contains("counter"));
    run(&["pause", "count", "a", "--reason", "a test"], "").ok();
    assert!(run(&["audit"], "").ok().out.contains("ops"));
    deploy("counter-2");
    assert!(run(&["handlers"], "").ok().out.contains("counter"));
    run(&["doctor"], "");

    let bare = run_in(folder.path(), &["--host", &url, "--set", &ca, "members"], "");
    bare.refused(2, "KEYRAIL_TOKEN");
    let untrusted = run_in(folder.path(), &["--host", &url, "--token-file", "token", "members"], "");
    untrusted.refused(4, "certificate");
    run_in(folder.path(), &["--host", "http://127.0.0.1:1", "members"], "").refused(4, "http.listen");
    run_in(folder.path(), &["--host", "localhost", "members"], "").refused(2, "http://HOST:PORT");
    run_in(folder.path(), &["--host", "http://a/b?c", "members"], "").refused(2, "without user, path or query");
}

#[tokio::test]
async fn the_client_publishes_and_is_told_what_is_refused() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &[]);
    let client = keyrail_client::Client::builder(&url(&host)).build().unwrap();
    let event = |key: &str| keyrail_client::Event::new("count", "Counted", &json!({ "key": key, "n": 1 })).unwrap();
    let published = client.publish(vec![event("a"), event("b").id("x")]).await.unwrap();
    assert_eq!((published.len(), published[1].id.as_str()), (2, "x"));
    let again = client.publish(vec![event("b").id("x")]).await.unwrap();
    assert_eq!((again[0].duplicate, &again[0].entry), (true, &published[1].entry));
    match client.publish(vec![event("a"), event("a:b")]).await.unwrap_err() {
        keyrail_client::Error::Refused { events, .. } => assert_eq!(events[0].index, 1),
        other => panic!("{other:?}"),
    }
}

/// Resident memory of a process, in bytes.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn five_hundred_slow_clients_hold_bounded_memory_and_nobody_else_up() {
    const CLIENTS: usize = 500;
    const SENT: usize = 256 << 10;
    const BODIES_MAX: usize = 16 << 20;
    let redis = RedisServer::start().unwrap();
    let room = format!("http.bodies_max_bytes={BODIES_MAX}");
    let host = host(&redis.url(), &["--set", &room, "--set", "http.requests_per_s_max=0"]);
    let api = Api::of(&host);
    api.post("/v1/events", &counted("a", "0")).ok();
    let before = memory(host.pid());
    let head = "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
    let part = vec![b' '; SENT];
    let mut slow: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = TcpStream::connect(api.url.trim_start_matches("http://")).unwrap();
            client.set_nonblocking(true).unwrap();
            // As much as the host takes: it refuses most of them.
            let _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(&part));
            client
        })
        .collect();
    // They are all in: one of them was refused for want of room, and the rest wait.
    wait_until("there is no room for more", || {
        slow.iter_mut().any(|client| {
            let mut answer = [0; 200];
            client.read(&mut answer).is_ok_and(|read| String::from_utf8_lossy(&answer[..read]).contains("503"))
        })
    });
    let grown = memory(host.pid()).saturating_sub(before);
    assert!(grown < 4 * BODIES_MAX as u64, "{CLIENTS} slow clients hold {} MB", grown >> 20);
    drop(slow.split_off(CLIENTS / 2));
    wait_until("somebody else is served", || api.post("/v1/events", &counted("a", "1")).status.is_success());
}

#[test]
fn rubbish_on_the_wire_ends_its_own_connection() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &["--set", "http.requests_per_s_max=0", "--set", "http.head_timeout_ms=300"]);
    let api = Api::of(&host);
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(5_000));
    let rubbish: [&[u8]; 9] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /%ff%00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in rubbish {
        let mut client = TcpStream::connect(api.url.trim_start_matches("http://")).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let _ = client.write_all(bytes);
        let mut answer = vec![];
        // Until the host closes it.
        let _ = client.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 30"),
            "{shown}: {answer}"
        );
    }
    api.get("/health/live").ok();
    assert!(!host.log().contains("panicked"), "{}", host.log());
}
