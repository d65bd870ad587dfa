//! What a host does not let itself be done: bodies too large or too slow, too many requests, slow clients, rubbish.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::http::Api;
use keyrail_tests::wait_until;
use reqwest::Method;
use serde_json::json;

use super::{counted, host, post};

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
