//! Commands that work through a host, and what they say when they do not reach it.

use std::fs;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::http::url;
use keyrail_tests::{guest, run_in, wait_until};
use tempfile::TempDir;

use super::{counted, token};

#[test]
fn commands_work_through_a_host_over_tls_with_a_token() {
    let redis = RedisServer::start().unwrap();
    let folder = TempDir::new().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let all = token(folder.path(), "ops", &["publish", "read", "operate", "deploy"]);
    fs::write(folder.path().join("token"), format!("{all}\n")).unwrap();
    let at = |file: &str| folder.path().join(file).display().to_string();
    let host = Host::up(
        &redis.url(),
        &[],
        &[
            "--set",
            "http.listen=127.0.0.1:0",
            "--set",
            &format!("http.tokens_file={}", at("tokens.toml")),
            "--set",
            &format!("http.tls_cert_file={}", at("cert.pem")),
            "--set",
            &format!("http.tls_key_file={}", at("key.pem")),
        ],
    );
    let url = url(&host);
    assert!(url.starts_with("https://"), "{url}");
    let ca = format!("client.ca_file={}", at("cert.pem"));
    let run = |args: &[&str], input: &str| {
        let through = ["--host", url.as_str(), "--token-file", "token", "--set", &ca];
        let args: Vec<_> = through.iter().chain(args).copied().collect();
        run_in(folder.path(), &args, input)
    };
    let deploy = |name: &str| run(&["deploy", guest(name).to_str().unwrap(), "--reason", "a test"], "").ok();
    deploy("counter-1");
    let lines = format!("{}\n{}\n", counted("a", "1"), counted("b", "2"));
    run(&["publish", "-"], &lines).ok();
    wait_until("both are settled", || {
        let rows = run(&["partitions", "--json"], "").ok().out;
        rows.matches("\"waiting\":0").count() == 2
    });
    assert!(run(&["members"], "").ok().out.contains("counter"));
    run(&["pause", "count", "a", "--reason", "a test"], "").ok();
    assert!(run(&["audit"], "").ok().out.contains("ops"));
    deploy("counter-2");
    assert!(run(&["handlers"], "").ok().out.contains("counter"));
    run(&["doctor"], "");

    let bare = run_in(folder.path(), &["--host", &url, "--set", &ca, "members"], "");
    bare.refused(2, "KEYRAIL_TOKEN");
    let untrusted = run_in(folder.path(), &["--host", &url, "--token-file", "token", "members"], "");
    untrusted.refused(4, "certificate");
    assert_eq!(untrusted.err.lines().count(), 1, "one line, and not the library's before it: {untrusted:#?}");
    let plain = run_in(folder.path(), &["--host", &url.replace("https", "http"), "members"], "");
    plain.refused(4, &format!("does the host speak https? Try {url}\n"));
    let other = super::host(&redis.url(), &[]);
    let plain = keyrail_tests::http::url(&other);
    let greeted = run_in(folder.path(), &["--host", &plain.replace("http", "https"), "--set", &ca, "members"], "");
    greeted.refused(4, &format!("does the host speak http? Try {plain}\n"));
    run_in(folder.path(), &["--host", "http://127.0.0.1:1", "members"], "").refused(4, "http.listen");
    run_in(folder.path(), &["--host", "localhost", "members"], "").refused(2, "http://HOST:PORT");
    run_in(folder.path(), &["--host", "http://a/b?c", "members"], "").refused(2, "without user, path or query");
}
