//! A component that makes an HTTP request, through `wasi:http` as the toolchains link it.

use super::small::{Small, WIT};

/// As much of WASI as the guest uses.
const HTTP: &str = "
        package wasi:io@0.2.6 {
            interface poll { resource pollable { block: func(); } }
            interface error { resource error; }
            interface streams {
                use error.{error};
                variant stream-error { last-operation-failed(error), closed }
                resource input-stream { blocking-read: func(len: u64) -> result<list<u8>, stream-error>; }
            }
        }
        package wasi:http@0.2.6 {
            interface types {
                use wasi:io/poll@0.2.6.{pollable};
                use wasi:io/streams@0.2.6.{input-stream};
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
                resource incoming-body { %stream: func() -> result<input-stream>; }
                resource incoming-response { status: func() -> u16; consume: func() -> result<incoming-body>; }
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

/// A handler `fetch` of the message `fetch/fetch` version 1, in the order of its field `key`: sends `GET http://AUTHORITYPATH`, traps
/// unless the answer is 200, and puts what it has of its body into the state `answer`.
pub fn fetcher(authority: &str, path: &str) -> Vec<u8> {
    assert!(authority.len() <= 30 && path.len() <= 60, "they overlap in its memory");
    let world = "world handler { import wasi:io/poll@0.2.6; import wasi:io/streams@0.2.6; import wasi:http/types@0.2.6; import wasi:http/outgoing-handler@0.2.6;";
    let (length, path_length) = (authority.len(), path.len());
    let small = Small {
        wit: WIT.replace("world handler {", world) + HTTP,
        describe: "i32.const 64".into(),
        handle: format!(
            "(local $request i32) (local $future i32)
            (local.set $request (call $request (call $fields)))
            (if (call $authority (local.get $request) (i32.const 1) (i32.const 300) (i32.const {length})) (then unreachable))
            (if (call $path (local.get $request) (i32.const 1) (i32.const 330) (i32.const {path_length})) (then unreachable))
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
            (call $consume (i32.load (i32.const 504)) (i32.const 700))
            (if (i32.load8_u (i32.const 700)) (then unreachable))
            (call $stream (i32.load (i32.const 704)) (i32.const 720))
            (if (i32.load8_u (i32.const 720)) (then unreachable))
            (call $read (i32.load (i32.const 724)) (i64.const 100) (i32.const 740))
            (if (i32.load8_u (i32.const 740)) (then unreachable))
            (call $put (i32.const 280) (i32.const 6) (i32.load (i32.const 744)) (i32.load (i32.const 748)) (i32.const 760))
            i32.const 600"
        ),
        rest: format!(
            r#"(data (i32.const 16) "fetch\00\00\00key")
               (data (i32.const 64) "\10\00\00\00\05\00\00\00" "\10\00\00\00\01\00\00\00" "\00\00\00\00"
                  "\80\00\00\00\01\00\00\00" "\01\00\00\00" "\18\00\00\00\03\00\00\00" "\00\00\00\00\00\00\00\00")
               (data (i32.const 128) "\10\00\00\00\05\00\00\00" "\10\00\00\00\05\00\00\00" "\01\00\00\00"
                  "\b0\00\00\00\01\00\00\00")
               (data (i32.const 176) "\18\00\00\00\03\00\00\00" "\00\01")
               (data (i32.const 280) "answer") (data (i32.const 300) "{authority}") (data (i32.const 330) "{path}")"#
        ),
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
               (import "wasi:http/types@0.2.6" "[method]incoming-response.consume" (func $consume (param i32 i32)))
               (import "wasi:http/types@0.2.6" "[method]incoming-body.stream" (func $stream (param i32 i32)))
               (import "wasi:io/streams@0.2.6" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))
               (import "keyrail:handler/state@0.1.0" "put" (func $put (param i32 i32 i32 i32 i32)))
               (import "wasi:http/outgoing-handler@0.2.6" "handle" (func $send (param i32 i32 i32 i32)))"#,
        )
    };
    small.component()
}
