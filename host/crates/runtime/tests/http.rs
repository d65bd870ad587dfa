//! Outgoing HTTP of a real guest, through `wasi:http` as the toolchains link it.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use common::fetcher::fetcher;
use common::{Captured, ask, done, failed, settings};
use keyrail_ordering::FailureKind;
use keyrail_runtime::{HttpPlayer, HttpRecorder, HttpRoute, Manifest, Module, Runtime};

async fn load(authority: &str, manifest: &str) -> Arc<Module> {
    let manifest = Manifest::parse(manifest).unwrap();
    Runtime::new(settings()).unwrap().load_bytes("x.wasm", fetcher(authority, "/"), &manifest).await.unwrap()
}

#[tokio::test]
async fn a_guest_reaches_the_host_that_is_granted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = format!("localhost:{}", listener.local_addr().unwrap().port());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = vec![0; 4_096];
        let length = stream.read(&mut asked).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        String::from_utf8_lossy(&asked[..length]).into_owned()
    });
    let manifest =
        format!("limits.cpu_max_ms = 2000\ngrants.http = [{{ hosts = ['{authority}'], methods = ['GET'] }}]");
    let module = load(&authority, &manifest).await;
    assert!(module.external_effects() && module.warnings().is_empty());
    let mut instance = module.instantiate().await.unwrap();
    done(ask("", 0).of(&mut instance).await);
    assert!(instance.is_spent(), "the answer was not read to its end: it must not reach the next event");
    assert!(server.join().unwrap().starts_with("GET / HTTP/1.1"));
    assert_eq!((module.usage().http_requests, module.usage().denied), (1, 0));
}

/// C064: what is not granted is denied, counted and logged with the event, and the next event is none the worse.
#[tokio::test]
async fn c064_a_guest_does_not_reach_another_host() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let module = load(&authority, "grants.http = [{ hosts = ['*.example.org'], methods = ['GET'] }]").await;
    let captured = Captured::default();
    let guard = captured.start();
    failed(ask("", 0).of_fresh(&module).await, FailureKind::Trap, "unreachable");
    drop(guard);
    assert_eq!((module.usage().http_requests, module.usage().denied), (0, 1));
    let lines = captured.of_guests();
    let line = format!("GET to {authority} is not granted");
    assert!(lines.iter().any(|logged| logged.contains(&line) && logged.contains("event-1")), "{lines:?}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody connected");
}

/// A host that never answers is cut by the handler's own time, and is the handler's failure.
#[tokio::test]
async fn a_host_that_never_answers_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = format!("localhost:{}", listener.local_addr().unwrap().port());
    let manifest =
        format!("limits.wall_max_ms = 200\ngrants.http = [{{ hosts = ['{authority}'], methods = ['GET'] }}]");
    let module = load(&authority, &manifest).await;
    failed(ask("", 0).of_fresh(&module).await, FailureKind::Timeout, "took more than 200 ms");
}

/// What a guest was answered once it is answered without the server; and a guest that asks otherwise fails.
#[tokio::test]
async fn a_guest_is_answered_with_what_was_kept() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = format!("localhost:{}", listener.local_addr().unwrap().port());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let length = stream.read(&mut [0; 4_096]).unwrap();
        assert!(length > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        listener
    });
    let manifest =
        format!("limits.cpu_max_ms = 2000\ngrants.http = [{{ hosts = ['{authority}'], methods = ['GET'] }}]");
    let module = load(&authority, &manifest).await;
    let routed = async |module: &Arc<Module>, route| {
        let mut instance = module.instantiate().await.unwrap();
        instance.route_http(route);
        (ask("", 0).of(&mut instance).await, instance.is_spent())
    };
    let recorder = HttpRecorder::default();
    let (live, is_spent) = routed(&module, HttpRoute::Recorded(recorder.clone())).await;
    let live = done(live);
    assert!(is_spent, "as on the network, its answer was not read to its end");
    assert_eq!(&live.state[0].value.as_ref().unwrap()[..], b"ok");

    let listener = server.join().unwrap();
    let player = HttpPlayer::new(recorder.exchanges());
    let (played, is_spent) = routed(&module, HttpRoute::Played(player.clone())).await;
    assert_eq!((done(played), is_spent), (live, true));
    assert_eq!(player.differences(), [""; 0]);

    let (again, _) = routed(&module, HttpRoute::Played(player.clone())).await;
    failed(again, FailureKind::Trap, "unreachable");
    assert_eq!(player.differences(), [format!("call 2 is GET http://{authority}/, and no such call was recorded")]);
    assert_eq!((module.usage().http_requests, module.usage().denied), (1, 0));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody connected");
}
