//! Whether a component fits this host: what it imports and exports against what there is. Found before anything of it
//! runs, every reason at once.

use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem};

use crate::bindings::keyrail::handler::logging::Level;
use crate::bindings::keyrail::handler::outbox::{EmitError, Outgoing};
use crate::bindings::keyrail::handler::state::StateError;
use crate::bindings::keyrail::handler::types::{Disposition, Event, Metadata};
use crate::manifest::Grants;

/// The export that makes a component a handler.
const GUEST: &str = "keyrail:handler/guest@0.1.0";
const OURS: &str = "keyrail:handler/";
const OUR_VERSION: &str = "0.1";
const WASI_VERSION: &str = "0.2";

/// The interfaces of WASI that are always linked, with nothing behind them.
pub(crate) const BASE: [&str; 27] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// What is linked by grant. The first of each list is what one uses it by.
const HTTP: [&str; 2] = ["wasi:http/outgoing-handler", "wasi:http/types"];
const CONFIG: [&str; 1] = ["wasi:config/store"];
/// What the other grants change.
const CLOCK: &str = "wasi:clocks/wall-clock";
const RANDOM: [&str; 3] = ["wasi:random/random", "wasi:random/insecure", "wasi:random/insecure-seed"];

/// What a component imports of that which is linked by grant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) http: bool,
    pub(crate) config: bool,
}

impl Wants {
    pub(crate) fn of(imports: &[String]) -> Self {
        Self { http: has(imports, &HTTP), config: has(imports, &CONFIG) }
    }
}

fn has(imports: &[String], interfaces: &[&str]) -> bool {
    imports.iter().any(|import| interfaces.contains(&import.split('@').next().unwrap_or_default()))
}

/// What is granted and not used, a sentence each.
pub(crate) fn unused(imports: &[String], grants: &Grants) -> Vec<String> {
    let values = !grants.config.is_empty() || !grants.secrets.is_empty();
    let unused = |granted: bool, name: &str, interfaces: &[&str]| {
        (granted && !has(imports, interfaces))
            .then(|| format!("the manifest grants {name}, but the component does not import {}", interfaces[0]))
    };
    let all = [
        unused(!grants.http.is_empty(), "http", &HTTP),
        unused(values, "config or secrets", &CONFIG),
        unused(grants.clock, "clock", &[CLOCK]),
        unused(grants.random, "random", &RANDOM),
    ];
    all.into_iter().flatten().collect()
}

/// The names of everything that a component imports.
pub(crate) fn imports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().imports(engine).map(|(name, _)| name.to_owned()).collect()
}

/// Every reason why a component does not fit.
pub(crate) fn misfits(engine: &Engine, component: &Component, grants: &Grants) -> Vec<String> {
    let ty = component.component_type();
    let mut misfits = Vec::new();
    for (name, import) in ty.imports(engine) {
        match import.ty {
            // A type has nothing behind it.
            ComponentItem::Type(_) => {}
            ComponentItem::ComponentInstance(instance) => {
                misfits.extend(misfits_of_import(engine, component, name, &instance, grants));
            }
            _ => misfits.push(foreign(name)),
        }
    }
    misfits.extend(misfits_of_export(engine, component));
    misfits
}

fn foreign(name: &str) -> String {
    format!("it imports {name}, which this host does not offer; build it without")
}

/// Why an interface that is linked by grant cannot be had: the line of the manifest that it takes.
fn ungranted(name: &str, grants: &Grants) -> Option<String> {
    let interface = name.split('@').next().unwrap_or_default();
    let line = if HTTP.contains(&interface) {
        (grants.http.is_empty()).then_some(r#"grants.http = [{ hosts = ["HOST"], methods = ["GET"] }]"#)
    } else {
        let none = grants.config.is_empty() && grants.secrets.is_empty();
        none.then_some(r#"grants.config = { NAME = "VALUE" }"#)
    };
    line.map(|line| format!("it imports {name}, which its manifest does not grant; add to the manifest: {line}"))
}

fn misfits_of_import(
    engine: &Engine,
    component: &Component,
    name: &str,
    instance: &ComponentInstance,
    grants: &Grants,
) -> Vec<String> {
    let (interface, version) = name.split_once('@').unwrap_or((name, ""));
    let Some(ours) = interface.strip_prefix(OURS) else {
        let by_grant = HTTP.contains(&interface) || CONFIG.contains(&interface);
        return match (by_grant || BASE.contains(&interface), is_compatible(version, WASI_VERSION)) {
            (true, true) if by_grant => ungranted(name, grants).into_iter().collect(),
            (true, true) => vec![],
            (true, false) => vec![format!("it imports {name}; this host offers WASI {WASI_VERSION}")],
            (false, _) => vec![foreign(name)],
        };
    };
    if !is_compatible(version, OUR_VERSION) {
        return vec![format!("it imports {name}; this host offers {interface}@{OUR_VERSION}")];
    }
    if !matches!(ours, "types" | "state" | "outbox" | "logging") {
        return vec![foreign(name)];
    }
    let functions = instance.exports(engine).filter_map(|(function, item)| match item.ty {
        ComponentItem::ComponentFunc(ty) => Some((function.to_owned(), ty)),
        _ => None,
    });
    functions
        .filter_map(|(function, ty)| match check_import(component, ours, &function, &ty) {
            None => {
                Some(format!("it uses {function} of {name}, which this host does not have; run it on a newer host"))
            }
            Some(Err(error)) => Some(differs(&function, name, &error)),
            Some(Ok(())) => None,
        })
        .collect()
}

fn differs(function: &str, interface: &str, error: &wasmtime::Error) -> String {
    format!("{function} of {interface} has another type than this host's: {error:#}; build it from this host's WIT")
}

/// Semantic versions: a later patch is compatible.
fn is_compatible(version: &str, minor: &str) -> bool {
    version.strip_prefix(minor).is_some_and(|patch| patch.starts_with('.'))
}

/// None when this host has no such function.
fn check_import(
    component: &Component,
    interface: &str,
    function: &str,
    ty: &ComponentFunc,
) -> Option<wasmtime::Result<()>> {
    let component = component.component_type();
    let types = &component.instance_type();
    Some(match (interface, function) {
        ("state", "get") => ty.typecheck::<(String,), (Option<Vec<u8>>,)>(types),
        ("state", "put") => ty.typecheck::<(String, Vec<u8>), (Result<(), StateError>,)>(types),
        ("state", "remove") => ty.typecheck::<(String,), (Result<(), StateError>,)>(types),
        ("outbox", "emit") => ty.typecheck::<(Outgoing,), (Result<String, EmitError>,)>(types),
        ("logging", "log") => ty.typecheck::<(Level, String, String), ()>(types),
        _ => return None,
    })
}

fn misfits_of_export(engine: &Engine, component: &Component) -> Vec<String> {
    let ty = component.component_type();
    let types = &ty.instance_type();
    let exports: Vec<_> = ty.exports(engine).map(|(name, item)| (name.to_owned(), item.ty)).collect();
    let found = exports.iter().find_map(|(name, item)| {
        let version = name.strip_prefix("keyrail:handler/guest@")?;
        match item {
            ComponentItem::ComponentInstance(instance) if is_compatible(version, OUR_VERSION) => Some((name, instance)),
            _ => None,
        }
    });
    let Some((name, instance)) = found else {
        let names: Vec<_> = exports.iter().map(|(name, _)| name.as_str()).collect();
        return vec![lacks_guest(&names)];
    };
    let check = |function: &str, check: fn(&ComponentFunc, &_) -> wasmtime::Result<()>| match instance
        .get_export(engine, function)
        .map(|item| item.ty)
    {
        Some(ComponentItem::ComponentFunc(ty)) => check(&ty, types).err().map(|error| differs(function, name, &error)),
        _ => Some(format!("its export {name} lacks the function {function}; build it from this host's WIT")),
    };
    let describe = check("describe", |ty, types| ty.typecheck::<(), (Metadata,)>(types));
    let handle = check("handle", |ty, types| ty.typecheck::<(Event,), (Disposition,)>(types));
    describe.into_iter().chain(handle).collect()
}

fn lacks_guest(names: &[&str]) -> String {
    if let Some(other) = names.iter().find(|name| name.starts_with("keyrail:handler/guest@")) {
        return format!("it exports {other}, another version of the contract; this host runs {GUEST}");
    }
    let has = if names.is_empty() { "it exports nothing".into() } else { format!("it exports {}", names.join(", ")) };
    format!("it lacks the export {GUEST}; {has}")
}
