//! A host of its own process serves them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::{run, run_with_input, wait_until};
use serde_json::Value;
use tempfile::TempDir;

use super::{check_format, parse};

/// What a host answers to `GET PATH` on its socket: head and body.
fn get(socket: &Path, path: &str) -> (String, String) {
    let mut connection = UnixStream::connect(socket).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: keyrail\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_string(), body.to_string())
}

#[test]
fn a_host_serves_them_and_tells_its_busiest_key() {
    let (redis, folder) = (RedisServer::start().unwrap(), TempDir::new().unwrap());
    let (broker, socket) = (redis.url(), folder.path().join("socket"));
    let serves = format!("api.socket={}", socket.display());
    let host = Host::up(&broker, &["probe"], &["--set", &serves]);
    let line = |n: u64| {
        format!(r#"{{"category":"probe","type":"Probe","data":{{"key":"busy","mode":"spin","n":{n}}}}}"#) + "\n"
    };
    let lines: String = (0..200).map(|_| line(50)).collect();
    run_with_input(&format!("socket:{}", socket.display()), &["publish", "-"], &lines).ok();
    let hot = || {
        let members = run(&broker, &["members", "--json"]).ok().out;
        let members: Vec<Value> = members.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        members[0]["hot"][0].clone()
    };
    let series = || parse(&get(&socket, "/metrics").1);
    wait_until("the busiest key is told to the others, and its share to all", || {
        let hot = hot();
        let is_told = hot["key"] == "busy" && hot["category"] == "probe" && hot["group"] == "probe";
        is_told && series()[r#"keyrail_hottest_key_share{category="probe",group="probe"}"#] > 0.0
    });
    wait_until("guest code is counted", || {
        let series = series();
        let cpu =
            series.iter().find(|(series, _)| series.starts_with("keyrail_guest_cpu_seconds_total{group=\"probe\""));
        cpu.is_some_and(|(_, seconds)| *seconds > 0.0)
    });
    let (head, body) = get(&socket, "/metrics");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
    check_format(&body);
    let series = series();
    assert_eq!(series.get(r#"keyrail_published_total{category="probe",result="new"}"#), Some(&200.0), "{body}");
    assert!(series.contains_key("keyrail_guest_instances"), "{body}");
    assert!(!body.contains("busy"), "the key is told: {body}");
    drop(host);
}
