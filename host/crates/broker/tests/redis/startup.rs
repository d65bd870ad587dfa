//! A server that cannot be used is refused in one line that says what to change.

use keyrail_broker::redis::{RedisBroker, RedisSettings, diagnose};
use keyrail_broker::testing::RedisServer;
use keyrail_broker::{Broker, By, CheckOutcome, Error, HeadAction, Members, Operate};

use crate::world::{World, partition};

async fn refusal(url: &str) -> String {
    let settings = RedisSettings { connect_timeout_ms: 2_000, ..RedisSettings::default() };
    match RedisBroker::connect(url, settings).await {
        Err(Error::Unusable(line)) => {
            assert_eq!(line.lines().count(), 1, "{line}");
            line
        }
        other => panic!("{other:?}"),
    }
}

fn with_login(server: &RedisServer, login: &str) -> String {
    format!("redis://{login}@127.0.0.1:{}", server.port())
}

#[tokio::test]
async fn nobody_there() {
    let server = RedisServer::start().unwrap();
    let url = server.url();
    drop(server);
    assert!(refusal(&url).await.contains("does not answer"));
    assert!(refusal("http://x").await.contains("redis://"));
    assert!(refusal("no url").await.contains("redis://"));
}

#[tokio::test]
async fn a_wrong_password_and_none() {
    let server = RedisServer::start_with(&["--requirepass", "secret"]).unwrap();
    assert!(refusal(&server.url()).await.contains("user and password"));
    let wrong = refusal(&with_login(&server, ":wrong")).await;
    assert!(wrong.contains("user and password") && !wrong.contains("wrong@"), "{wrong}");
    let broker = RedisBroker::connect(&with_login(&server, ":secret"), RedisSettings::default()).await.unwrap();
    assert_eq!(broker.address(), format!("redis://127.0.0.1:{}/0", server.port()));
    assert!(!format!("{broker:?}").contains("secret"), "{broker:?}");
}

#[tokio::test]
async fn c018_cluster_mode() {
    let server = RedisServer::start_with(&["--cluster-enabled", "yes"]).unwrap();
    assert!(refusal(&server.url()).await.contains("cluster-enabled no"));
}

#[tokio::test]
async fn c019_a_user_with_too_few_permissions() {
    let server = RedisServer::start().unwrap();
    let client = redis::Client::open(server.url()).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    let mut allow = async |name: &str, rules: &[&str]| {
        let mut command = redis::cmd("ACL");
        command.arg("SETUSER").arg(name).arg("on").arg(">p");
        for rule in rules {
            command.arg(rule);
        }
        let _: () = command.query_async(&mut raw).await.unwrap();
    };
    allow("noload", &["~*", "&*", "+@all", "-function"]).await;
    allow("noclaim", &["~*", "&*", "+@all", "-xclaim", "-xtrim"]).await;
    allow("nodirect", &["~*", "&*", "+@all", "-setrange", "-subscribe"]).await;
    allow("nokeys", &["~order:*", "&*", "+@all"]).await;
    allow("nobells", &["~*", "resetchannels", "+@all"]).await;
    allow("good", &["~*", "&*", "+@all", "-@dangerous", "+info", "+function"]).await;
    assert!(refusal(&with_login(&server, "noload:p")).await.contains("+function"));
    let line = refusal(&with_login(&server, "noclaim:p")).await;
    assert!(line.contains("+xclaim +xtrim"), "{line}");
    let line = refusal(&with_login(&server, "nodirect:p")).await;
    assert!(line.contains("+setrange +subscribe"), "{line}");
    assert!(refusal(&with_login(&server, "nokeys:p")).await.contains("~__*"));
    assert!(refusal(&with_login(&server, "nobells:p")).await.contains("&*"));
    RedisBroker::connect(&with_login(&server, "good:p"), RedisSettings::default()).await.unwrap();
}

#[tokio::test]
async fn a_replica() {
    let server = RedisServer::start().unwrap();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &server.port().to_string()]).unwrap();
    assert!(refusal(&replica.url()).await.contains("address of its primary"));
}

#[tokio::test]
async fn a_diagnosis_shows_every_check_and_ends_at_the_first_failure() {
    let server = RedisServer::start().unwrap();
    let settings = RedisSettings::default();
    let checks = diagnose(&server.url(), &settings).await;
    let found: Vec<_> = checks.iter().map(|check| check.name).collect();
    let all = [
        "connection",
        "version",
        "mode",
        "role",
        "eviction",
        "memory",
        "persistence",
        "functions",
        "permissions",
        "library",
        "round trip",
        "clock",
    ];
    assert_eq!(found, all, "{checks:?}");
    for check in &checks {
        assert_eq!(check.says.lines().count(), 1, "{check:?}");
        let due = if check.name == "persistence" { CheckOutcome::Warned } else { CheckOutcome::Passed };
        assert_eq!(check.outcome, due, "{check:?}");
    }

    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &server.port().to_string()]).unwrap();
    let checks = diagnose(&replica.url(), &settings).await;
    let failed: Vec<_> = checks.iter().filter(|check| check.outcome == CheckOutcome::Failed).collect();
    assert!(failed.len() == 1 && failed[0].name == "role" && checks.len() == 7, "{checks:?}");

    drop(server);
    let checks = diagnose("redis://127.0.0.1:1", &settings).await;
    assert_eq!((checks.len(), checks[0].name, checks[0].outcome), (1, "connection", CheckOutcome::Failed));
    let checks = diagnose("http://x", &settings).await;
    assert_eq!((checks.len(), checks[0].name, checks[0].outcome), (1, "address", CheckOutcome::Failed));
}

#[tokio::test]
async fn a_full_server_lets_an_operator_work() {
    let world = World::new().await;
    world.publish("a", 1..=1).await;
    world.cli("CONFIG SET maxmemory 1").await;
    let broker = RedisBroker::connect(&world.server.url(), RedisSettings::default()).await.unwrap();
    let partition = partition("a");
    let head = broker.head(&partition).await.unwrap().unwrap().entry.at.clone();
    let by = By { who: "ann".into(), reason: "the server is full".into() };
    broker.act_on_head(&partition, &head, HeadAction::Skip, &by).await.unwrap();
    assert!(broker.head(&partition).await.unwrap().is_none());
    assert!(broker.members().await.unwrap().is_empty());
}
