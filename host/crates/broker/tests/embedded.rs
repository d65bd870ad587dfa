//! The embedded broker: the contract suite in memory and on a file, and what only it can be asked.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;

use keyrail_broker::Broker;
use keyrail_broker::contract::Subject;
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings, Writing};

fn subject(broker: EmbeddedBroker) -> Subject {
    let broker = Arc::new(broker);
    let spoiled = broker.clone();
    Subject::new(broker as Arc<dyn Broker>).with_spoil(Box::new(move |at| {
        let broker = spoiled.clone();
        Box::pin(async move { broker.overwrite_entry(at, b"no entry".to_vec()).await.unwrap() })
    }))
}

mod in_memory {
    use super::*;

    async fn memory() -> Subject {
        subject(EmbeddedBroker::memory(EmbeddedSettings::default()).unwrap())
    }

    keyrail_broker::contract_tests!(memory);
}

mod without_threads {
    use super::*;

    async fn inline() -> Subject {
        let settings = EmbeddedSettings { writing: Writing::Inline, ..EmbeddedSettings::default() };
        subject(EmbeddedBroker::memory(settings).unwrap())
    }

    keyrail_broker::contract_tests!(inline);
}

mod on_a_file {
    use super::*;

    async fn file() -> Subject {
        let folder = tempfile::tempdir().unwrap();
        let broker = EmbeddedBroker::open(folder.path().join("keyrail.db"), EmbeddedSettings::default()).unwrap();
        subject(broker).keeping(folder)
    }

    keyrail_broker::contract_tests!(file);
}
