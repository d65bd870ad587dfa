//! The itinerary in five languages, side by side in one fleet over the same events: all give the same itineraries.
#![allow(clippy::unwrap_used, missing_docs)]

use keyrail_broker::testing::RedisServer;
use keyrail_tests::flights::assert_itineraries;
use keyrail_tests::host::Host;
use keyrail_tests::{guest, repository, run};

const HANDLERS: [&str; 5] = ["itinerary", "itinerary-js", "itinerary-python", "itinerary-go", "itinerary-c"];

#[test]
fn five_languages_give_the_same_itineraries_side_by_side() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let files = HANDLERS.map(|name| guest(name).to_str().unwrap().to_string());
    let register: Vec<_> = std::iter::once("register").chain(files.iter().map(String::as_str)).collect();
    run(&broker, &register).ok();
    run(&broker, &["publish", repository("examples/flights/sample.jsonl.gz").to_str().unwrap()]).ok();
    let hosts = [(); 2].map(|()| Host::start(&broker, &HANDLERS, &["--until-idle"]));
    for host in hosts {
        assert_eq!(host.wait(), 0);
    }
    for name in HANDLERS {
        assert_itineraries(&broker, name, &repository("examples/flights/sample.itinerary.jsonl"));
    }
}
