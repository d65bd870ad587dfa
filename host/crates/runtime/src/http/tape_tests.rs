//! Requests that are kept once, and answered without the server afterwards.

use std::net::TcpListener;

use http_body_util::{BodyExt, Full};

use super::tests::{body, outgoing_for, server};
use super::*;
use crate::grants::Mask;

const HELLO: &str = "HTTP/1.1 200 OK\r\nx-kind: greeting\r\nset-cookie: id=secret\r\ncontent-length: 5\r\n\r\nhello";

fn request(method: &str, url: &str, body: &'static str) -> Request<Body> {
    let body = Full::from(body).map_err(|never| match never {}).boxed_unsync();
    let authority = url.split('/').nth(2).unwrap();
    let request = Request::builder().method(method).uri(url).header("host", authority);
    request.header("authorization", "Basic aHVudGVyMjI=").body(body).unwrap()
}

struct Way {
    outgoing: Outgoing,
    counters: Arc<Counters>,
}

impl Way {
    fn new(port: u16, limits: Limits, secret: &str, route: HttpRoute) -> Self {
        let host = format!("localhost:{port}");
        let (mut outgoing, counters) = outgoing_for(&[&host], &["GET", "POST"], limits, Mask::of(secret));
        outgoing.set_route(route);
        Self { outgoing, counters }
    }

    fn playing(port: u16, kept: &[HttpExchange]) -> (Self, HttpPlayer) {
        let player = HttpPlayer::new(kept.to_vec());
        (Self::new(port, Limits::default(), "swordfish", HttpRoute::Played(player.clone())), player)
    }

    /// Status, a header and the body of the answer; or the error's text.
    async fn ask(&mut self, method: &str, url: &str, asked: &'static str) -> Result<(u16, String, Bytes), String> {
        let sent = self.outgoing.send_request(request(method, url, asked), None, Box::new(async { Ok(()) }));
        let answer = Pin::from(sent).await.map_err(|error| error.to_string())?;
        let status = answer.0.status().as_u16();
        let kind = answer.0.headers().get("x-kind").map_or("", |value| value.to_str().unwrap()).to_owned();
        Ok((status, kind, body(answer).await.map_err(|error| error.to_string())?))
    }
}

/// Two calls that were kept, of a server that is gone.
async fn kept() -> (u16, Vec<HttpExchange>) {
    let (port, served) = server(HELLO, 2);
    let recorder = HttpRecorder::default();
    let mut live = Way::new(port, Limits::default(), "hunter22", HttpRoute::Recorded(recorder.clone()));
    let answer = Ok((200, "greeting".to_owned(), Bytes::from_static(b"hello")));
    assert_eq!(live.ask("POST", &format!("http://localhost:{port}/a?k=hunter22"), "token=hunter22&n=1").await, answer);
    assert_eq!(live.ask("GET", &format!("http://localhost:{port}/b"), "").await, answer);
    assert!(!live.outgoing.end(), "both answers were read");
    let asked = served.join().unwrap();
    assert!(asked[0].contains("/a?k=hunter22") && asked[0].ends_with("\r\n\r\ntoken=hunter22&n=1"), "{}", asked[0]);
    assert!(asked[1].starts_with("GET /b HTTP/1.1") && !asked[1].contains("transfer-encoding"), "{}", asked[1]);
    assert_eq!(live.counters.read().http_requests, 2);
    (port, recorder.exchanges())
}

#[tokio::test]
async fn what_was_kept_is_answered_without_the_server() {
    let (port, kept) = kept().await;
    let player = HttpPlayer::new(kept);
    // Another secret than when it was kept: which one it is cannot matter.
    let mut playing = Way::new(port, Limits::default(), "swordfish", HttpRoute::Played(player.clone()));
    let answer = Ok((200, "greeting".to_owned(), Bytes::from_static(b"hello")));
    let url = format!("http://localhost:{port}/a?k=swordfish");
    assert_eq!(playing.ask("POST", &url, "token=swordfish&n=1").await, answer);
    assert_eq!(playing.ask("GET", &format!("http://localhost:{port}/b"), "").await, answer);
    assert_eq!(player.differences(), [""; 0]);
    assert_eq!(playing.counters.read().http_requests, 0, "nobody was asked");
}

#[tokio::test]
async fn what_is_kept_is_without_secrets() {
    let (_, kept) = kept().await;
    let shown = format!("{kept:?}");
    for secret in ["hunter22", "Basic", "id=secret"] {
        assert!(!shown.contains(secret), "{secret} is in {shown}");
    }
    assert!(kept[0].request.url.ends_with("/a?k=***") && &kept[0].request.body[..] == b"token=***&n=1", "{shown}");
    assert!(kept[0].request.headers.iter().any(|(name, value)| name == "authorization" && value == "***"), "{shown}");
}

#[tokio::test]
async fn another_request_fails_and_is_reported() {
    let (port, kept) = kept().await;
    let a = format!("http://localhost:{port}/a?k=***");
    let b = format!("http://localhost:{port}/b");
    for (method, url, body, says) in [
        ("GET", &a, "token=***&n=1", format!("call 1 is GET {a}, and POST {a} was recorded")),
        ("POST", &b, "token=***&n=1", format!("call 1 is POST {b}, and POST {a} was recorded")),
        ("POST", &a, "token=***&n=2", "another body: \"token=***&n=2\", and \"token=***&n=1\" was recorded".into()),
    ] {
        let (mut playing, player) = Way::playing(port, &kept);
        let error = playing.ask(method, url, body).await.unwrap_err();
        assert!(error.contains("keyrail replay has no answer") && error.contains(&says), "{error}");
        let differences = player.differences();
        assert!(differences.len() == 1 && differences[0].contains(&says), "{differences:?}");
        assert_eq!(playing.counters.read().http_requests, 0);
    }

    let (mut playing, player) = Way::playing(port, &kept[..1]);
    playing.ask("POST", &a, "token=***&n=1").await.unwrap();
    let error = playing.ask("GET", &b, "").await.unwrap_err();
    assert!(error.contains(&format!("call 2 is GET {b}, and no such call was recorded")), "{error}");
    assert_eq!(player.differences().len(), 1);

    let (mut playing, player) = Way::playing(port, &kept);
    playing.ask("POST", &a, "token=***&n=1").await.unwrap();
    assert_eq!(player.differences(), [format!("call 2, GET {b}, was not made")]);
}

#[tokio::test]
async fn a_request_that_is_not_granted_is_denied_on_every_route() {
    let (port, kept) = kept().await;
    let recorder = HttpRecorder::default();
    let player = HttpPlayer::new(kept);
    for route in [HttpRoute::Network, HttpRoute::Recorded(recorder.clone()), HttpRoute::Played(player.clone())] {
        // The host that is granted is another one.
        let mut way = Way::new(port ^ 1, Limits::default(), "hunter22", route);
        let error = way.ask("GET", &format!("http://localhost:{port}/b"), "").await.unwrap_err();
        assert_eq!(error, "HTTP request denied");
        assert_eq!((way.counters.read().http_requests, way.counters.read().denied), (0, 1));
    }
    assert!(recorder.exchanges().is_empty());
    assert_eq!(player.differences().len(), 2, "neither call was made");
}

#[tokio::test]
async fn what_fails_fails_again() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (large, _served) = server("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhello, hello, hello!", 1);
    let limits = Limits { http_wait_max_ms: 100, http_response_max_bytes: 19, ..Limits::default() };
    for (port, fault) in [
        (silent.local_addr().unwrap().port(), HttpFault::ConnectionReadTimeout),
        (closed, HttpFault::ConnectionRefused),
        (large, HttpFault::ResponseBodySize(19)),
    ] {
        let url = format!("http://localhost:{port}/");
        let recorder = HttpRecorder::default();
        let mut live = Way::new(port, limits, "hunter22", HttpRoute::Recorded(recorder.clone()));
        let failed = live.ask("GET", &url, "").await;
        let kept = recorder.exchanges();
        match &kept[0].answer {
            HttpAnswer::Fault(found) => assert_eq!(*found, fault),
            HttpAnswer::Response(response) => assert_eq!(response.broke_off, Some(fault)),
            HttpAnswer::Unanswered => panic!("it was answered"),
        }
        let (mut playing, _) = Way::playing(port, &kept);
        assert_eq!(playing.ask("GET", &url, "").await, failed);
        assert!(failed.is_err());
    }
}

#[tokio::test]
async fn a_request_that_was_given_up_has_its_place() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("http://localhost:{port}/");
    let recorder = HttpRecorder::default();
    let mut live = Way::new(port, Limits::default(), "hunter22", HttpRoute::Recorded(recorder.clone()));
    drop(live.outgoing.send_request(request("GET", &url, ""), None, Box::new(async { Ok(()) })));
    let kept = recorder.exchanges();
    assert_eq!(kept[0].answer, HttpAnswer::Unanswered);
    let (mut playing, player) = Way::playing(port, &kept);
    let again = playing.outgoing.send_request(request("GET", &url, ""), None, Box::new(async { Ok(()) }));
    let mut again = Pin::from(again);
    std::future::poll_fn(|context| {
        assert!(again.as_mut().poll(context).is_pending(), "as it was");
        std::task::Poll::Ready(())
    })
    .await;
    assert_eq!(player.differences(), [""; 0]);
}
