//! The contract suite on Redis.

use std::sync::Arc;

use keyrail_broker::Broker;
use keyrail_broker::contract::Subject;
use keyrail_broker::redis::{RedisBroker, RedisSettings, keyspace};
use keyrail_broker::testing::RedisServer;
use keyrail_ordering::{EntryRef, KeyRules};

async fn on_redis() -> Subject {
    let server = RedisServer::start().unwrap();
    let settings = RedisSettings { response_timeout_ms: 20_000, ..RedisSettings::default() };
    let broker = Arc::new(RedisBroker::connect(&server.url(), settings).await.unwrap());
    let url = server.url();
    Subject::new(broker as Arc<dyn Broker>)
        .with_spoil(Box::new(move |at| {
            let url = url.clone();
            Box::pin(async move { spoil(&url, &at).await })
        }))
        .keeping(server)
}

/// Entries cannot be changed in place, so the stream is written again with the same ids.
async fn spoil(url: &str, at: &EntryRef) {
    let client = redis::Client::open(url).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    let name = keyspace::stream(&at.stream, &KeyRules::default());
    let rows: Vec<(String, Vec<(String, String)>)> =
        redis::cmd("XRANGE").arg(&name).arg("-").arg("+").query_async(&mut raw).await.unwrap();
    let _: () = redis::cmd("DEL").arg(&name).query_async(&mut raw).await.unwrap();
    for (id, fields) in rows {
        let mut add = redis::cmd("XADD");
        add.arg(&name).arg(&id);
        for (field, value) in fields {
            let spoiled = id == at.id.to_string() && field == "version";
            add.arg(field).arg(if spoiled { "no number" } else { &value });
        }
        let _: String = add.query_async(&mut raw).await.unwrap();
    }
}

keyrail_broker::contract_tests!(on_redis);
