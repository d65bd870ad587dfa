//! Requests to a server of a few lines on this machine.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use http_body_util::{BodyExt, Empty};

use super::*;
use crate::grants::Mask;
use crate::manifest::{HostPattern, HttpMethod};

/// Answers each connection with this text, and gives what it was asked.
pub(super) fn server(answer: &'static str, connections: usize) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let mut asked = Vec::new();
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; 4_096];
            let read = stream.read(&mut request).unwrap();
            asked.push(String::from_utf8_lossy(&request[..read]).into_owned());
            // A client that has read enough hangs up.
            let _ = stream.write_all(answer.as_bytes());
        }
        asked
    };
    (port, std::thread::spawn(serve))
}

fn outgoing(hosts: &[&str], limits: Limits) -> (Outgoing, Arc<Counters>) {
    outgoing_for(hosts, &["GET"], limits, Mask::default())
}

pub(super) fn outgoing_for(hosts: &[&str], methods: &[&str], limits: Limits, mask: Mask) -> (Outgoing, Arc<Counters>) {
    let grant = HttpGrant {
        hosts: hosts.iter().map(|host| HostPattern::parse(host).unwrap()).collect(),
        methods: methods.iter().map(|method| HttpMethod::parse(method).unwrap()).collect(),
    };
    let access = HttpAccess { grants: vec![grant], tls: tls().unwrap() };
    let counters = Arc::new(Counters::default());
    let rate = Arc::new(crate::log::LogRate::new(1_000));
    let log = Log::new("h".into(), &limits, rate, counters.clone(), Arc::new(mask));
    let mut outgoing = Outgoing::new(Some(Arc::new(access)), limits, counters.clone(), log);
    outgoing.begin();
    (outgoing, counters)
}

async fn ask(outgoing: &mut Outgoing, method: &str, url: &str) -> Result<(Response<Body>, Io), Error> {
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let authority = url.split('/').nth(2).unwrap();
    let request = Request::builder().method(method).uri(url).header("host", authority).body(body).unwrap();
    Pin::from(outgoing.send_request(request, None, Box::new(async { Ok(()) }))).await
}

/// The body, with the connection kept going beside it as wasmtime does.
pub(super) async fn body((response, io): (Response<Body>, Io)) -> Result<Bytes, Error> {
    let io = tokio::spawn(Pin::from(io));
    let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    io.abort();
    body
}

#[tokio::test]
async fn a_granted_request_is_sent_and_answered() {
    let (port, served) = server("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 1);
    let (mut outgoing, counters) = outgoing(&[&format!("127.0.0.1:{port}")], Limits::default());
    let answer = ask(&mut outgoing, "GET", &format!("http://127.0.0.1:{port}/a?b=c")).await.unwrap();
    assert!(outgoing.end(), "the answer is not read yet, so the instance must not go on");
    assert_eq!(body(answer).await.unwrap(), "hello");
    let asked = served.join().unwrap().remove(0);
    assert!(
        asked.starts_with("GET /a?b=c HTTP/1.1\r\n") && asked.contains(&format!("host: 127.0.0.1:{port}")),
        "{asked}"
    );
    assert_eq!((counters.read().http_requests, counters.read().denied), (1, 0));
}

#[tokio::test]
async fn what_is_not_granted_is_denied_and_counted() {
    let (mut outgoing, counters) = outgoing(&["localhost:1", "*.example.org"], Limits::default());
    for (method, url) in [
        ("POST", "http://localhost:1/"),
        ("GET", "http://localhost:2/"),
        ("GET", "http://127.0.0.1:1/"),
        ("GET", "http://example.org/"),
        ("GET", "https://user@a.example.org/"),
        ("GET", "http://localhost.evil.net:1/"),
    ] {
        let denied = ask(&mut outgoing, method, url).await;
        assert!(matches!(denied, Err(Error::HttpRequestDenied)), "{method} {url}");
    }
    assert_eq!((counters.read().http_requests, counters.read().denied), (0, 6));
    // Without a call there is nobody to send for.
    outgoing.end();
    assert!(matches!(ask(&mut outgoing, "GET", "http://localhost:1/").await, Err(Error::HttpRequestDenied)));
}

#[tokio::test]
async fn a_grant_of_a_domain_does_not_reach_this_machine() {
    // Names below localhost lead here, wherever the resolver knows them at all.
    let reach = Reach::Public;
    let target = Target { host: "localhost".into(), port: 1, is_tls: false, reach };
    let limits = Limits::default();
    let request =
        Request::builder().uri("http://localhost:1/").body(Empty::new().map_err(|never| match never {}).boxed_unsync());
    let sent =
        send::send(target, &tls().unwrap(), limits, request.unwrap(), RequestOptions::default(), Arc::new(())).await;
    assert!(matches!(sent, Err(Error::DestinationIpProhibited)));
}

#[tokio::test]
async fn a_redirect_is_given_and_not_followed() {
    let (port, served) =
        server("HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n", 1);
    let (mut outgoing, _) = outgoing(&[&format!("localhost:{port}")], Limits::default());
    let (response, _io) = ask(&mut outgoing, "GET", &format!("http://localhost:{port}/")).await.unwrap();
    assert_eq!(response.status(), 302);
    served.join().unwrap();
}

#[tokio::test]
async fn a_response_over_its_limit_ends() {
    let (port, served) = server("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhello, hello, hello!", 2);
    let url = format!("http://localhost:{port}/");
    for (limit, fits) in [(20, true), (19, false)] {
        let limits = Limits { http_response_max_bytes: limit, ..Limits::default() };
        let (mut outgoing, _) = outgoing(&[&format!("localhost:{port}")], limits);
        let read = body(ask(&mut outgoing, "GET", &url).await.unwrap()).await;
        match read {
            Ok(_) => assert!(fits),
            Err(Error::HttpResponseBodySize(Some(19))) => assert!(!fits),
            Err(other) => panic!("{other}"),
        }
    }
    served.join().unwrap();
}

#[tokio::test]
async fn a_host_that_says_nothing_is_waited_for_so_long() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let limits = Limits { http_wait_max_ms: 100, ..Limits::default() };
    let (mut silent, _) = outgoing(&[&format!("localhost:{port}")], limits);
    let url = format!("http://localhost:{port}/");
    assert!(matches!(ask(&mut silent, "GET", &url).await, Err(Error::ConnectionReadTimeout)));
    assert!(!silent.end(), "nothing is left of it");

    let (port, served) = server("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhello", 1);
    let (mut breaks_off, _) = outgoing(&[&format!("localhost:{port}")], limits);
    let read = body(ask(&mut breaks_off, "GET", &format!("http://localhost:{port}/")).await.unwrap()).await;
    assert!(read.is_err());
    served.join().unwrap();
}

#[tokio::test]
async fn requests_over_the_limit_of_a_call_are_denied() {
    let (mut outgoing, counters) = outgoing(&["localhost:1"], Limits { http_requests_max: 2, ..Limits::default() });
    for _ in 0..2 {
        assert!(matches!(ask(&mut outgoing, "GET", "http://localhost:1/").await, Err(Error::Connect(_))));
    }
    assert!(matches!(ask(&mut outgoing, "GET", "http://localhost:1/").await, Err(Error::HttpRequestDenied)));
    outgoing.begin();
    assert!(matches!(ask(&mut outgoing, "GET", "http://localhost:1/").await, Err(Error::Connect(_))), "the next call");
    assert_eq!(counters.read().http_requests, 3);
}
