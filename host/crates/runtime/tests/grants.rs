//! Manifests: what is granted, what is refused at load, and that a secret stays one.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::Arc;

use common::small::{Small, WIT, metadata_at_64};
use common::{Captured, ask, done, failed, guest, probe_with, settings, written};
use keyrail_ordering::FailureKind;
use keyrail_runtime::{LoadError, Manifest, Module, Runtime, Settings};

fn manifest(text: &str) -> Manifest {
    Manifest::parse(text).unwrap()
}

async fn load(settings: Settings, component: Vec<u8>, text: &str) -> Result<Arc<Module>, LoadError> {
    Runtime::new(settings).unwrap().load_bytes("x.wasm", component, &manifest(text)).await
}

async fn refusals(settings: Settings, component: Vec<u8>, text: &str) -> Vec<String> {
    match load(settings, component, text).await {
        Err(LoadError::Refused(reasons)) => reasons,
        other => panic!("{other:?}"),
    }
}

fn small() -> Small {
    Small { describe: "i32.const 64".into(), rest: metadata_at_64("small"), ..Small::default() }
}

/// Answers `done`, and before that reads the configuration value NAME and writes it as the state value `seen`.
fn reader() -> Vec<u8> {
    let store = r"
        package wasi:config@0.2.0-rc.1 {
            interface store {
                variant error { upstream(string), io(string) }
                get: func(key: string) -> result<option<string>, error>;
            }
        }";
    let small = Small {
        wit: WIT.replace("world handler {", "world handler { import wasi:config/store@0.2.0-rc.1;") + store,
        handle: r"
            (call $config (i32.const 300) (i32.const 4) (i32.const 320))
            ;; ok(some(text)), or a trap
            (i32.or (i32.load8_u (i32.const 320)) (i32.ne (i32.load8_u (i32.const 324)) (i32.const 1))) if unreachable end
            (call $log (i32.const 2) (i32.const 310) (i32.const 0) (i32.load (i32.const 328)) (i32.load (i32.const 332)))
            (call $put (i32.const 310) (i32.const 4) (i32.load (i32.const 328)) (i32.load (i32.const 332)) (i32.const 344))
            ;; `done` is the first case
            i32.const 400"
            .into(),
        rest: format!("{} (data (i32.const 300) \"NAME\") (data (i32.const 310) \"seen\")", metadata_at_64("small")),
        ..Small::importing(
            r#"(import "wasi:config/store@0.2.0-rc.1" "get" (func $config (param i32 i32 i32)))
               (import "keyrail:handler/state@0.1.0" "put" (func $put (param i32 i32 i32 i32 i32)))
               (import "keyrail:handler/logging@0.1.0" "log" (func $log (param i32 i32 i32 i32 i32)))"#,
        )
    };
    Small { describe: "i32.const 64".into(), ..small }.component()
}

fn seen(answer: keyrail_runtime::Answer) -> String {
    let effects = done(answer);
    String::from_utf8(effects.state[0].value.as_ref().unwrap().to_vec()).unwrap()
}

/// C060: what is not granted is refused at load, with the line that would grant it.
#[tokio::test]
async fn c060_an_ungranted_import_is_refused_with_the_line_to_add() {
    let reasons = refusals(settings(), reader(), "").await;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    let line = r#"add to the manifest: grants.config = { NAME = "VALUE" }"#;
    assert!(reasons[0].starts_with("it imports wasi:config/store@0.2.0-rc.1, which its manifest does not grant"));
    assert!(reasons[0].ends_with(line), "{}", reasons[0]);
    // The line as it is given is one.
    assert_eq!(manifest(line.split(": ").nth(1).unwrap()).grants.config["NAME"], "VALUE");

    let http = WIT.replace("world handler {", "world handler { import wasi:http/outgoing-handler@0.2.6;")
        + "\npackage wasi:http@0.2.6 { interface outgoing-handler { handle: func(); } }";
    let small =
        Small { wit: http, ..Small::importing(r#"(import "wasi:http/outgoing-handler@0.2.6" "handle" (func))"#) };
    let reasons = refusals(settings(), small.component(), "").await;
    let line = reasons[0].split("add to the manifest: ").nth(1).unwrap();
    assert_eq!(manifest(line).grants.http.len(), 1);
}

#[tokio::test]
async fn a_configuration_value_is_read_under_its_name() {
    let module = load(settings(), reader(), "grants.config = { NAME = 'blue' }").await.unwrap();
    assert_eq!(seen(ask("", 0).of_fresh(&module).await), "blue");
    assert!(!module.external_effects() && module.warnings().is_empty());
    let other = load(settings(), reader(), "grants.config = { OTHER = 'blue' }").await.unwrap();
    failed(ask("", 0).of_fresh(&other).await, FailureKind::Trap, "unreachable");
}

/// The guest gets it; nobody else does, though the guest logs it. A changed file is seen by the next instance.
#[tokio::test]
async fn a_secret_is_read_anew_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "hunter2-first\n").unwrap();
    let settings = Settings { secrets_dir: Some(folder.path().into()), ..settings() };
    let module = load(settings, reader(), "grants.secrets = { NAME = { file = 'token' } }").await.unwrap();

    let captured = Captured::default();
    let guard = captured.start();
    assert_eq!(seen(ask("", 0).of_fresh(&module).await), "hunter2-first");
    std::fs::write(&file, "hunter2-second").unwrap();
    assert_eq!(seen(ask("", 0).of_fresh(&module).await), "hunter2-second");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(seen(ask("", 0).of_fresh(&module).await), "hunter2-second", "as it was read last");
    drop(guard);
    let lines = captured.lines.lock().unwrap().join("\n");
    assert!(lines.contains("***") && lines.contains("as it was read before"), "{lines}");
    assert!(!lines.contains("hunter2"), "{lines}");
    assert!(!format!("{:?} {:?}", module.manifest(), module).contains("hunter2"));
}

/// A manifest is written by whoever deploys, and read by a host that has more than that person may see.
#[tokio::test]
async fn only_secrets_that_the_operator_offers_can_be_named() {
    let text = "[grants.secrets]\na = { env = 'PATH' }\nb = { file = '/etc/passwd' }\nc = { env = 'KEYRAIL_SECRET_NONE' }\nNAME = { env = 'HOME' }";
    let reasons = refusals(settings(), reader(), text).await.join("; ");
    for part in [
        "grants.secrets.a: PATH does not start with KEYRAIL_SECRET_",
        "grants.secrets.b: this host gives no file as a secret (runtime.secrets_dir is not set)",
        "grants.secrets.c: the host has no variable KEYRAIL_SECRET_NONE",
        "grants.secrets.NAME: HOME does not start",
    ] {
        assert!(reasons.contains(part), "{part:?} is not in {reasons}");
    }
    let folder = tempfile::tempdir().unwrap();
    let settings =
        Settings { secrets_dir: Some(folder.path().into()), secrets_env_prefix: String::new(), ..settings() };
    let reasons = refusals(settings, reader(), text).await.join("; ");
    assert!(reasons.contains("/etc/passwd: it is not in the folder"), "{reasons}");
    assert!(reasons.contains("runtime.secrets_env_prefix is empty"), "{reasons}");
}

#[tokio::test]
async fn a_wish_over_the_ceiling_is_refused_with_its_line() {
    let text = "[limits]\ncpu_max_ms = 40_000\nmemory_max_bytes = 8_000_000_000";
    let reasons = refusals(settings(), small().component(), text).await;
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(
        reasons.iter().any(|reason| reason.contains("limits.cpu_max_ms = 40000 is over this host's ceiling of 30000"))
    );
}

#[tokio::test]
async fn hosts_that_the_operator_does_not_allow_are_refused() {
    let allowed = vec![keyrail_runtime::manifest::HostPattern::parse("*.example.org").unwrap()];
    let settings = Settings { http_hosts: Some(allowed), ..settings() };
    let text = "grants.http = [{ hosts = ['api.example.org', 'localhost:6379'], methods = ['GET'] }]";
    let reasons = refusals(settings, small().component(), text).await;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].contains("localhost:6379, which this host's runtime.http_hosts does not allow"));
}

#[tokio::test]
async fn what_is_granted_and_not_used_is_told() {
    let text =
        "[grants]\nclock = true\nrandom = true\nconfig = { a = '1' }\nhttp = [{ hosts = ['a.b'], methods = ['GET'] }]";
    let module = load(settings(), small().component(), text).await.unwrap();
    assert_eq!(module.warnings().len(), 4, "{:?}", module.warnings());
    assert!(!module.external_effects(), "granted, but not imported");
}

/// The limits of a manifest are the handler's own, beside another one's of the same runtime.
#[tokio::test]
async fn limits_are_those_of_the_manifest() {
    let runtime = Runtime::new(Settings { cpu_max_ms: 20_000, ..settings() }).unwrap();
    let component = std::fs::read(guest("probe")).unwrap();
    let wishes = manifest("[limits]\nmemory_max_bytes = 4194304\nemits_max = 2\nlog_lines_max = 3\ncpu_max_ms = 100");
    let tight = runtime.load_bytes("tight", component.clone(), &wishes).await.unwrap();
    let wide = runtime.load_bytes("wide", component, &Manifest::default()).await.unwrap();
    failed(ask("alloc", 8).of_fresh(&tight).await, FailureKind::Memory, "4194304 are allowed");
    done(ask("alloc", 8).of_fresh(&wide).await);
    failed(ask("emit", 3).of_fresh(&tight).await, FailureKind::Refused, "at most 2");
    done(ask("emit", 3).of_fresh(&wide).await);
    failed(ask("loop", 0).of_fresh(&tight).await, FailureKind::Timeout, "more than 100 ms of CPU");
    done(ask("log-flood", 10).of_fresh(&tight).await);
    assert_eq!((tight.usage().log_lines_dropped, wide.usage().log_lines_dropped), (7, 0));
    assert_eq!(tight.limits().emits_max, 2);
}

#[tokio::test]
async fn clock_and_random_are_real_by_grant() {
    let module = probe_with(settings(), &manifest("grants = { clock = true, random = true }")).await;
    let first = written(&done(ask("clock", 0).of_fresh(&module).await), "clock");
    let again = written(&done(ask("clock", 0).of_fresh(&module).await), "clock");
    assert_ne!(first["wall_ms"], 1_700_000_000_123_u64, "not the event's");
    assert!(first["wall_ms"].as_u64() > Some(1_700_000_000_123));
    assert_ne!(first["random"], again["random"]);
}
