//! A host process with the handlers of `keyrail_tests::native`, which can kill or stop itself right before a chosen step.
//!
//! `native-host URL SETTINGS HANDLERS STEP:NTH:SIGNAL|-`: SETTINGS is a JSON object of `EngineConfig`, HANDLERS are names
//! with commas; SIGNAL is `kill` or `stop`, or `lose` for an acquire whose answer is lost.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keyrail::config::{EngineConfig, PublishConfig};
use keyrail::engine::Engine;
use keyrail::service::{Registration, Service};
use keyrail_broker::Broker;
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_ordering::OwnerId;
use keyrail_tests::intercept::{Fate, Hook, Intercepted, Step};
use keyrail_tests::native::{Marking, metadata};
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

/// Kills or stops this process before the n-th such step.
fn hook(plan: &str) -> Hook {
    let Some((step, rest)) = plan.split_once(':') else { return Arc::new(|_| Fate::Answered) };
    let (nth, what) = rest.split_once(':').unwrap();
    let nth: u64 = nth.parse().unwrap();
    let signal = match what {
        "kill" => Some(Signal::KILL),
        "stop" => Some(Signal::STOP),
        _ => None,
    };
    let step = match step {
        "acquire" => Step::Acquire,
        "take" => Step::Take,
        "commit" => Step::Commit,
        "fail" => Step::Fail,
        "release" => Step::Release,
        "renew" => Step::Renew,
        "route" => Step::Route,
        other => panic!("no such step: {other}"),
    };
    let seen = AtomicU64::new(0);
    Arc::new(move |now| {
        if now != step || seen.fetch_add(1, Ordering::SeqCst) + 1 != nth {
            return Fate::Answered;
        }
        match signal {
            Some(signal) => {
                kill_process(getpid(), signal).unwrap();
                Fate::Answered
            }
            None => Fate::AnswerLost,
        }
    })
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, settings, handlers, plan] = &arguments[..] else { panic!("URL SETTINGS HANDLERS PLAN") };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let config: EngineConfig = serde_json::from_str(settings).unwrap();
    assert_eq!(config.problems(), Vec::<String>::new());
    let broker: Arc<dyn Broker> = Arc::new(RedisBroker::connect(url, RedisSettings::default()).await.unwrap());
    let names: Vec<&str> = handlers.split(',').collect();
    let registrations: Vec<_> =
        names.iter().map(|name| Registration { metadata: metadata(name), content_hash: "00".into() }).collect();
    Service::new(broker.clone(), PublishConfig::default()).register(&registrations).await.unwrap();
    let marks = redis::Client::open(url.as_str()).unwrap().get_connection_manager().await.unwrap();
    let handlers = names.iter().map(|name| Marking::handler(name, marks.clone())).collect();
    let owner = OwnerId::new(&format!("native-{}", std::process::id()));
    let grace_ms = config.shutdown_grace_ms;
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    let engine = Engine::start(Intercepted::new(broker, hook(plan)), handlers, &config, owner).await.unwrap();
    println!("the host is up");
    terminate.recv().await;
    engine.shutdown(grace_ms).await;
}
