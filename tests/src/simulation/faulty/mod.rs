//! A broker that is reached over a faulty network: what each host of the simulation is given.

/// Sends an operation: `send!(self, "its name", |truth| truth.operation(…).await)`, with arguments that the network can keep.
macro_rules! send {
    ($client:expr, $what:literal, |$truth:ident| $operation:expr) => {
        $client.link.send($what, move |$truth| Box::pin(async move { $operation })).await
    };
}

mod network;
mod operator;
mod owner;
mod reading;

use std::sync::Arc;

use keyrail_broker::Broker;

pub(super) use network::{Link, Network, Weather};

use super::truth::Truth;

/// The broker as one client reaches it.
pub(super) struct FaultyBroker {
    pub(super) link: Link,
}

impl FaultyBroker {
    fn truth(&self) -> &Arc<Truth> {
        &self.link.network.truth
    }
}

impl Broker for FaultyBroker {
    fn address(&self) -> String {
        "simulated".into()
    }
}
