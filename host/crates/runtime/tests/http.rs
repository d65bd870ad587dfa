//! Outgoing HTTP of a real guest, through `wasi:http` as the toolchains link it.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use common::small::{Small, WIT, metadata_at_64};
use common::{Captured, ask, done, failed, settings};
use keyrail_ordering::FailureKind;
use keyrail_runtime::{Manifest, Module, Runtime};

/// As much of WASI as the guest uses.
const HTTP: &str = "
        package wasi:io@0.2.6 { interface poll { resource pollable { block: func(); } } }
        package wasi:http@0.2.6 {
            interface types {
                use wasi:io/poll@0.2.6.{pollable};
                variant scheme { HTTP, HTTPS, other(string) }
                record DNS-error-payload { rcode: option<string>, info-code: option<u16> }
                record TLS-alert-received-payload { alert-id: option<u8>, alert-message: option<string> }
                record field-size-payload { field-name: option<string>, field-size: option<u32> }
                variant error-code {
                    DNS-timeout, DNS-error(DNS-error-payload), destination-not-found, destination-unavailable,
                    destination-IP-prohibited, destination-IP-unroutable, connection-refused, connection-terminated,
                    connection-timeout, connection-read-timeout, connection-write-timeout, connection-limit-reached,
                    TLS-protocol-error, TLS-certificate-error, TLS-alert-received(TLS-alert-received-payload),
                    HTTP-request-denied, HTTP-request-length-required, HTTP-request-body-size(option<u64>),
                    HTTP-request-method-invalid, HTTP-request-URI-invalid, HTTP-request-URI-too-long,
                    HTTP-request-header-section-size(option<u32>), HTTP-request-header-size(option<field-size-payload>),
                    HTTP-request-trailer-section-size(option<u32>), HTTP-request-trailer-size(field-size-payload),
                    HTTP-response-incomplete, HTTP-response-header-section-size(option<u32>),
                    HTTP-response-header-size(field-size-payload), HTTP-response-body-size(option<u64>),
                    HTTP-response-trailer-section-size(option<u32>), HTTP-response-trailer-size(field-size-payload),
                    HTTP-response-transfer-coding(option<string>), HTTP-response-content-coding(option<string>),
                    HTTP-response-timeout, HTTP-upgrade-failed, HTTP-protocol-error, loop-detected, configuration-error,
                    internal-error(option<string>),
                }
                resource fields { constructor(); }
                resource request-options { constructor(); }
                resource outgoing-request {
                    constructor(headers: fields);
                    set-authority: func(authority: option<string>) -> result;
                    set-path-with-query: func(path-with-query: option<string>) -> result;
                    set-scheme: func(scheme: option<scheme>) -> result;
                }
                resource incoming-response { status: func() -> u16; }
                resource future-incoming-response {
                    subscribe: func() -> pollable;
                    get: func() -> option<result<result<incoming-response, error-code>>>;
                }
            }
            interface outgoing-handler {
                use types.{outgoing-request, request-options, future-incoming-response, error-code};
                handle: func(request: outgoing-request, options: option<request-options>)
                    -> result<future-incoming-response, error-code>;
            }
        }";

/// Sends `GET http://AUTHORITY/`; traps unless the answer is 200.
fn fetcher(authority: &str) -> Vec<u8> {
    let world = "world handler { import wasi:io/poll@0.2.6; import wasi:http/types@0.2.6; import wasi:http/outgoing-handler@0.2.6;";
    let length = authority.len();
    let small = Small {
        wit: WIT.replace("world handler {", world) + HTTP,
        describe: "i32.const 64".into(),
        handle: format!(
            "(local $request i32) (local $future i32)
            (local.set $request (call $request (call $fields)))
            (if (call $authority (local.get $request) (i32.const 1) (i32.const 300) (i32.const {length})) (then unreachable))
            (if (call $path (local.get $request) (i32.const 1) (i32.const 290) (i32.const 1)) (then unreachable))
            (if (call $scheme (local.get $request) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)) (then unreachable))
            (call $send (local.get $request) (i32.const 0) (i32.const 0) (i32.const 400))
            (if (i32.load8_u (i32.const 400)) (then unreachable))
            (local.set $future (i32.load (i32.const 408)))
            (call $block (call $subscribe (local.get $future)))
            (call $get (local.get $future) (i32.const 480))
            ;; some(ok(ok(response))) with status 200
            (if (i32.ne (i32.load8_u (i32.const 480)) (i32.const 1)) (then unreachable))
            (if (i32.load8_u (i32.const 488)) (then unreachable))
            (if (i32.load8_u (i32.const 496)) (then unreachable))
            (if (i32.ne (call $status (i32.load (i32.const 504))) (i32.const 200)) (then unreachable))
            i32.const 600"
        ),
        rest: format!("{} (data (i32.const 290) \"/\") (data (i32.const 300) \"{authority}\")", metadata_at_64("small")),
        ..Small::importing(
            r#"(import "wasi:io/poll@0.2.6" "[method]pollable.block" (func $block (param i32)))
               (import "wasi:http/types@0.2.6" "[constructor]fields" (func $fields (result i32)))
               (import "wasi:http/types@0.2.6" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
               (import "wasi:http/types@0.2.6" "[method]outgoing-request.set-authority"
                   (func $authority (param i32 i32 i32 i32) (result i32)))
               (import "wasi:http/types@0.2.6" "[method]outgoing-request.set-path-with-query"
                   (func $path (param i32 i32 i32 i32) (result i32)))
               (import "wasi:http/types@0.2.6" "[method]outgoing-request.set-scheme"
                   (func $scheme (param i32 i32 i32 i32 i32) (result i32)))
               (import "wasi:http/types@0.2.6" "[method]future-incoming-response.subscribe"
                   (func $subscribe (param i32) (result i32)))
               (import "wasi:http/types@0.2.6" "[method]future-incoming-response.get" (func $get (param i32 i32)))
               (import "wasi:http/types@0.2.6" "[method]incoming-response.status" (func $status (param i32) (result i32)))
               (import "wasi:http/outgoing-handler@0.2.6" "handle" (func $send (param i32 i32 i32 i32)))"#,
        )
    };
    small.component()
}

async fn load(authority: &str, manifest: &str) -> Arc<Module> {
    let manifest = Manifest::parse(manifest).unwrap();
    Runtime::new(settings()).unwrap().load_bytes("x.wasm", fetcher(authority), &manifest).await.unwrap()
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
