//! The HTTP API of real hosts: who may do what, publishing in every form, limits, health, the command line through it.
#![allow(clippy::unwrap_used, missing_docs)]

mod access;
mod commands;
mod limits;
mod openapi;
mod publishing;

use std::path::Path;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::{Host, freeze, thaw};
use keyrail_tests::http::{Answered, Api};
use keyrail_tests::{run_in, wait_until};
use reqwest::Method;
use serde_json::{Value, json};

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

/// Makes a token of these roles in the folder's `tokens.toml`.
fn token(folder: &Path, name: &str, roles: &[&str]) -> String {
    let roles = roles.iter().flat_map(|role| ["--role", role]);
    let args: Vec<_> = ["token", name, "--file", "tokens.toml"].into_iter().chain(roles).collect();
    run_in(folder, &args, "").ok().out.trim().to_string()
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
