//! What is refused when a component is loaded, and how it is said; and the cache of compiled code.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::small::{Small, WIT, component_of, metadata_at_64};
use common::{ask, done, guest, settings};
use keyrail_runtime::{LoadError, Manifest, Runtime, Settings};

async fn refused(bytes: Vec<u8>) -> LoadError {
    let runtime = Runtime::new(settings()).unwrap();
    runtime.load_bytes("x.wasm", bytes, &Manifest::default()).await.expect_err("it was loaded")
}

/// Every reason, when a component does not fit.
async fn misfits(component: Vec<u8>) -> Vec<String> {
    match refused(component).await {
        LoadError::Refused(reasons) => reasons,
        other => panic!("{other}"),
    }
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| text.contains(part)), "{text:?} lacks one of {parts:?}");
    assert!(!text.contains('\n'), "more than one line: {text:?}");
}

#[tokio::test]
async fn what_is_no_component_is_told_by_kind() {
    assert_has(&refused(vec![]).await.to_string(), &["x.wasm is empty"]);
    assert_has(&refused(b"MZ random bytes".to_vec()).await.to_string(), &["x.wasm is not a WebAssembly component"]);
    let core = Small::default().core_module();
    assert_has(&refused(core).await.to_string(), &["core WebAssembly module", "wasm32-wasip2"]);
    let mut cut = Small::default().component();
    cut.truncate(cut.len() - 40);
    assert_has(&refused(cut).await.to_string(), &["x.wasm does not compile"]);
    let missing =
        Runtime::new(settings()).unwrap().load(Path::new("/nowhere/x.wasm"), &Manifest::default()).await.unwrap_err();
    assert_has(&missing.to_string(), &["/nowhere/x.wasm cannot be read", "No such file"]);
}

#[tokio::test]
async fn c060_a_missing_export_is_named_beside_what_there_is() {
    let wit = "package a:b; world other { export run: func(); export stop: func(); }";
    let core = wat::parse_str(r#"(module (func (export "run")) (func (export "stop")))"#).unwrap();
    let reasons = misfits(component_of(core, wit, "other")).await;
    assert_eq!(reasons.len(), 1);
    assert_has(&reasons[0], &["lacks the export keyrail:handler/guest@0.1.0", "exports run, stop"]);
}

#[tokio::test]
async fn c060_another_version_of_the_contract_is_named() {
    let later = Small { guest: "keyrail:handler/guest@0.2.0".into(), ..Small::changed("@0.1.0;", "@0.2.0;") };
    let reasons = misfits(later.component()).await;
    assert!(reasons.iter().any(|reason| reason.contains("exports keyrail:handler/guest@0.2.0")), "{reasons:?}");
}

/// A later patch only adds functions, so its handlers run here.
#[tokio::test]
async fn a_later_patch_of_the_contract_is_taken() {
    let later = Small { guest: "keyrail:handler/guest@0.1.7".into(), ..Small::changed("@0.1.0;", "@0.1.7;") };
    let error = refused(later.component()).await;
    assert!(matches!(error, LoadError::Describe { .. }), "it should get as far as trapping: {error}");
}

#[tokio::test]
async fn c060_every_foreign_import_is_listed() {
    let wit = WIT.to_owned().replace(
        "world handler {",
        "world handler { import wasi:http/outgoing-handler@0.2.6; import wasi:keyvalue/store@0.2.0; import lone: func();",
    ) + "\npackage wasi:http@0.2.6 { interface outgoing-handler { handle: func(); } }
         package wasi:keyvalue@0.2.0 { interface store { open: func(); } }";
    // Packages in the same file need the first one's declaration to stay on top, which it does.
    let imports = r#"(import "wasi:http/outgoing-handler@0.2.6" "handle" (func))
                     (import "wasi:keyvalue/store@0.2.0" "open" (func))
                     (import "$root" "lone" (func))"#;
    let reasons = misfits(Small { wit, ..Small::importing(imports) }.component()).await;
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    for name in ["wasi:http/outgoing-handler@0.2.6", "wasi:keyvalue/store@0.2.0", "lone"] {
        assert!(reasons.iter().any(|reason| reason.contains(name)), "{name}: {reasons:?}");
    }
}

#[tokio::test]
async fn c060_a_base_interface_of_another_release_is_told() {
    let wit = WIT.replace("world handler {", "world handler { import wasi:io/poll@0.3.0;")
        + "\npackage wasi:io@0.3.0 { interface poll { poll: func(); } }";
    let small = Small { wit, ..Small::importing(r#"(import "wasi:io/poll@0.3.0" "poll" (func))"#) };
    let reasons = misfits(small.component()).await;
    assert_eq!(reasons.len(), 1);
    assert_has(&reasons[0], &["wasi:io/poll@0.3.0", "WASI 0.2"]);
}

/// The same version with another shape: what differs is named, on both sides at once.
#[tokio::test]
async fn c060_another_type_under_the_same_version_is_named() {
    let changed = Small {
        wit: WIT.replace("attempt: u32", "attempt: u64").replace("too-large(u64)", "too-large(u32)"),
        ..Small::importing(r#"(import "keyrail:handler/state@0.1.0" "put" (func (param i32 i32 i32 i32 i32)))"#)
    };
    let reasons = misfits(changed.component()).await;
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert_has(&reasons[0], &["put of keyrail:handler/state@0.1.0 has another type"]);
    assert_has(&reasons[1], &["handle of keyrail:handler/guest@0.1.0 has another type", "attempt"]);
}

#[tokio::test]
async fn c060_a_function_of_a_newer_host_is_named() {
    let newer = Small {
        wit: WIT.replace("  remove: func", "  names: func() -> u32;\n  remove: func"),
        ..Small::importing(r#"(import "keyrail:handler/state@0.1.0" "names" (func (result i32)))"#)
    };
    let reasons = misfits(newer.component()).await;
    assert_eq!(reasons.len(), 1);
    assert_has(&reasons[0], &["uses names of keyrail:handler/state@0.1.0", "newer host"]);
}

#[tokio::test]
async fn a_describe_that_traps_is_told() {
    let error = refused(Small::default().component()).await;
    assert!(matches!(error, LoadError::Describe { .. }), "{error}");
    assert_has(&error.to_string(), &["x.wasm failed to describe itself", "unreachable"]);
}

#[tokio::test]
async fn a_describe_without_end_is_told() {
    let runtime = Runtime::new(Settings { describe_max_ms: 100, ..settings() }).unwrap();
    let endless = Small { describe: "(loop $again (br $again)) unreachable".into(), ..Small::default() };
    let error = runtime.load_bytes("x.wasm", endless.component(), &Manifest::default()).await.unwrap_err();
    assert_has(&error.to_string(), &["failed to describe itself", "more than 100 ms"]);
}

#[tokio::test]
async fn start_up_code_without_end_is_told() {
    let runtime = Runtime::new(Settings { describe_max_ms: 100, ..settings() }).unwrap();
    let rest = "(func $start (loop $again (br $again))) (start $start)".into();
    let error = runtime
        .load_bytes("x.wasm", Small { rest, ..Small::default() }.component(), &Manifest::default())
        .await
        .unwrap_err();
    assert_has(&error.to_string(), &["failed to describe itself", "more than 100 ms"]);
}

#[tokio::test]
async fn state_and_outbox_are_not_there_yet_in_describe() {
    let state = r#"(import "keyrail:handler/state@0.1.0" "get" (func $get (param i32 i32 i32)))"#;
    let small = Small {
        describe: "(call $get (i32.const 0) (i32.const 1) (i32.const 16)) unreachable".into(),
        ..Small::importing(state)
    };
    assert_has(&refused(small.component()).await.to_string(), &["state.get was called", "no event"]);

    let outbox = r#"(import "keyrail:handler/outbox@0.1.0" "emit" (func $emit (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#;
    let args = "(i32.const 0) ".repeat(9);
    let small =
        Small { describe: format!("(call $emit {args} (i32.const 16)) unreachable"), ..Small::importing(outbox) };
    assert_has(&refused(small.component()).await.to_string(), &["outbox.emit was called", "no event"]);
}

#[tokio::test]
async fn more_memory_than_the_limit_is_told() {
    let small = Small { rest: "(table (export \"t\") 50000 funcref)".into(), ..Small::default() };
    let error = refused(small.component()).await;
    assert_has(&error.to_string(), &["20000"]);
}

#[tokio::test]
async fn bad_names_are_refused_all_at_once() {
    let small = Small { describe: "i32.const 64".into(), rest: metadata_at_64("A:B!?"), ..Small::default() };
    match refused(small.component()).await {
        LoadError::Declaration(refusals) => assert_eq!(refusals.len(), 3, "{refusals:?}"),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_small_handler_is_loaded() {
    let small = Small { describe: "i32.const 64".into(), rest: metadata_at_64("small"), ..Small::default() };
    let module =
        Runtime::new(settings()).unwrap().load_bytes("x.wasm", small.component(), &Manifest::default()).await.unwrap();
    assert_eq!(module.metadata().name.as_str(), "small");
}

#[tokio::test]
async fn a_handler_is_loaded_with_its_metadata_and_imports() {
    let bytes = std::fs::read(guest("probe")).unwrap();
    let module = Runtime::new(settings()).unwrap().load_bytes("probe.wasm", bytes, &Manifest::default()).await.unwrap();
    assert_eq!(module.metadata().name.as_str(), "probe");
    assert_eq!(module.metadata().handles.len(), 1);
    assert_eq!(module.content_hash().len(), 64);
    assert!(module.imports().iter().any(|name| name == "keyrail:handler/state@0.1.0"), "{:?}", module.imports());
    assert!(!module.external_effects());
}

fn cached(dir: &Path) -> Arc<Runtime> {
    Runtime::new(Settings { cache_dir: Some(dir.into()), ..settings() }).unwrap()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn compiled_code_is_kept_and_used_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("deep/compiled");
    let load = async || cached(&dir).load(&guest("itinerary"), &Manifest::default()).await.unwrap();
    let module = load().await;
    let kept = files(&dir);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(kept[0].file_name().unwrap().to_str().unwrap().starts_with(module.content_hash()));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&kept[0])), (0o700, 0o600));

    // Used: were it written again, it would be another file.
    use std::os::unix::fs::MetadataExt;
    let inode = std::fs::metadata(&kept[0]).unwrap().ino();
    load().await;
    assert_eq!(std::fs::metadata(&kept[0]).unwrap().ino(), inode);
}

#[tokio::test]
async fn a_damaged_or_foreign_file_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("compiled");
    cached(&dir).load(&guest("probe"), &Manifest::default()).await.unwrap();
    let path = files(&dir).remove(0);
    let good = std::fs::read(&path).unwrap();
    let last = good.len() - 1;

    let flipped = |at: usize| good.iter().enumerate().map(|(i, byte)| if i == at { byte ^ 1 } else { *byte }).collect();
    let cut = good[..good.len() / 2].to_vec();
    let damaged: [Vec<u8>; 6] = [vec![], b"foreign".to_vec(), cut, flipped(0), flipped(last), flipped(last / 2)];
    for bad in damaged {
        std::fs::write(&path, &bad).unwrap();
        let module = cached(&dir).load(&guest("probe"), &Manifest::default()).await.unwrap();
        done(ask("ok", 0).of_fresh(&module).await);
        assert_eq!(files(&dir), std::slice::from_ref(&path));
        assert_ne!(std::fs::read(&path).unwrap(), bad, "it was not made again");
    }
}

/// Right mark and checksum, but no code of this engine: wasmtime itself refuses it.
#[tokio::test]
async fn code_of_another_engine_is_made_again() {
    use sha2::{Digest, Sha256};
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("compiled");
    cached(&dir).load(&guest("probe"), &Manifest::default()).await.unwrap();
    let path = files(&dir).remove(0);
    let foreign = b"\x7fELF not for this engine";
    let file = [&b"keyrail compiled 1\n"[..], &Sha256::digest(foreign), foreign].concat();
    std::fs::write(&path, file).unwrap();
    let module = cached(&dir).load(&guest("probe"), &Manifest::default()).await.unwrap();
    done(ask("ok", 0).of_fresh(&module).await);
    assert!(std::fs::metadata(&path).unwrap().len() > 1_000);
}

#[test]
fn a_directory_that_others_may_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = Runtime::new(Settings { cache_dir: Some(folder.path().into()), ..settings() }).unwrap_err();
    assert_has(&error.to_string(), &["chmod 700"]);
}
