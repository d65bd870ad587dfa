//! The OpenAPI document: a validator of others takes it, and what a real host answers is what it says. `tests/openapi/check.py`
//! judges; the validator is installed, pinned, into a cache.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::http::{Answered, Api};
use keyrail_tests::{guest, repository, run, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::ANYWHERE;

/// A host where there is something of everything: keys with state, one that stands still, an event that was set aside, a key that is
/// paused, a deployment, and so members and an audit.
struct Place {
    api: Api,
    letter: String,
    /// What was answered: path of the document, method, status, media type, body.
    answers: Vec<Value>,
    _host: Host,
    _redis: RedisServer,
}

impl Place {
    fn new() -> Self {
        let redis = RedisServer::start().unwrap();
        let quick = ["--set", "engine.retry.attempts_max=2", "--set", "engine.retry.backoff_base_ms=10"];
        let args: Vec<_> = ANYWHERE.iter().chain(&quick).copied().collect();
        let host = Host::up(&redis.url(), &["probe"], &args);
        let api = Api::of(&host);
        run(&redis.url(), &["deploy", guest("counter-1").to_str().unwrap(), "--reason", "a test"]).ok();
        let mut place = Self { api, letter: String::new(), answers: vec![], _host: host, _redis: redis };
        place.prepare();
        place
    }

    fn prepare(&mut self) {
        let event = |key: &str, mode: &str| json!({ "category": "probe", "type": "Probe", "data": { "key": key, "mode": mode, "n": 0 } });
        let bad = json!({ "category": "nothing", "type": "Probe", "data": {} });
        let events = json!([
            event("calm", "count"),
            event("stuck", "reject"),
            event("stuck", "count"),
            event("aside", "reject")
        ]);
        self.post("/v1/events", "/v1/events", &events, 200);
        self.post("/v1/events", "/v1/events", &json!([event("calm", "count"), bad]), 422);
        self.post("/v1/events", "/v1/events?skip_bad=true", &json!([event("calm", "count"), bad]), 207);
        wait_until("two keys stand still", || rows(&self.api.get("/v1/halted?category=probe").ok()).len() == 2);
        let by = json!({ "who": "ann", "reason": "a test" });
        let head = self.api.get("/v1/heads/probe?key=aside").ok()["heads"][0]["entry"].clone();
        let request = json!({ "key": "aside", "group": "probe", "expect": head, "by": by });
        self.post("/v1/heads/{category}/{action}", "/v1/heads/probe/set-aside", &request, 200);
        self.post("/v1/heads/{category}/{action}", "/v1/heads/probe/set-aside", &request, 409);
        let request = json!({ "key": "rest", "by": by });
        self.post("/v1/categories/{category}/{action}", "/v1/categories/probe/pause", &request, 200);
        let letters = self.api.get("/v1/dead-letters?category=probe").ok();
        self.letter = rows(&letters)[0]["id"].as_str().unwrap().to_string();
    }

    fn post(&mut self, path: &str, at: &str, body: &Value, status: u16) {
        let answered = self.api.post(at, body);
        assert_eq!(answered.status.as_u16(), status, "{at}: {answered:#?}");
        self.keep(path, "post", &answered);
    }

    fn get(&mut self, path: &str, at: &str) -> Value {
        let answered = self.api.get(at);
        self.keep(path, "get", &answered);
        answered.body
    }

    fn keep(&mut self, path: &str, method: &str, answered: &Answered) {
        let media = answered.headers["content-type"].to_str().unwrap();
        let (status, body) = (answered.status.as_u16(), &answered.body);
        self.answers.push(json!({ "path": path, "method": method, "status": status, "media": media, "body": body }));
    }

    /// Asks for everything that can be looked at. Parameters in paths are ours to fill in: a path that is not known here fails.
    fn look(&mut self, document: &Value) {
        let letter = format!("/v1/dead-letters/probe/{}?key=aside", self.letter);
        for (path, methods) in document["paths"].as_object().unwrap() {
            if methods.get("get").is_none() {
                continue;
            }
            let places: Vec<&str> = match path.as_str() {
                "/v1/states/{group}" => vec!["/v1/states/probe", "/v1/states/nobody"],
                "/v1/heads/{category}" => {
                    vec!["/v1/heads/probe?key=stuck", "/v1/heads/nothing?key=k", "/v1/heads/probe"]
                }
                "/v1/recordings/{category}" => {
                    vec![
                        "/v1/recordings/probe?key=stuck",
                        "/v1/recordings/probe?key=stuck&from=start",
                        "/v1/recordings/nothing?key=k",
                    ]
                }
                "/v1/dead-letters/{category}/{id}" => vec![&letter, "/v1/dead-letters/probe/1-1?key=k"],
                // The first page of all categories may be an empty one, of a category where nothing is.
                "/v1/halted" => vec!["/v1/halted?category=probe", path],
                "/v1/dead-letters" => vec!["/v1/dead-letters?category=probe", path],
                "/v1/partitions" => vec!["/v1/partitions?category=probe", path],
                "/v1/live" | "/v1/tail" => {
                    self.follow(path);
                    continue;
                }
                path => {
                    assert!(!path.contains('{'), "fill in {path}");
                    vec![path]
                }
            };
            let seen = self.get(path, places[0]);
            assert!(!seen.is_null(), "{path}");
            for member in ["rows", "members", "heads", "paused", "handlers", "hosts", "categories"] {
                let is_empty = seen[member].as_array().is_some_and(Vec::is_empty);
                assert!(!is_empty, "nothing is learned from no {member} of {path}: {seen}");
            }
            for place in &places[1..] {
                self.get(path, place);
            }
            if methods["get"]["parameters"].is_array() {
                let separator = if places[0].contains('?') { '&' } else { '?' };
                self.get(path, &format!("{}{separator}nonsense=1", places[0]));
            }
        }
    }

    /// Streams do not end: that they begin is looked at, and that the first event of the fleet is its overview.
    fn follow(&mut self, path: &str) {
        let begun = self.api.begun(path, |text| path == "/v1/tail" || text.contains("\n\n"));
        self.keep(path, "get", &begun);
        if path == "/v1/live" {
            let text = begun.body.as_str().unwrap();
            let data = text.strip_prefix("event: overview\ndata: ").unwrap_or_else(|| panic!("{text}"));
            let body: Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
            let as_if = Answered { body, ..self.api.get("/v1/overview") };
            self.keep("/v1/overview", "get", &as_if);
        }
    }
}

fn rows(listing: &Value) -> &[Value] {
    listing["rows"].as_array().unwrap()
}

/// The folder of the validator; installs it the first time.
fn validator() -> PathBuf {
    let wanted = repository("tests/openapi/tools.txt");
    let name = fs::read_to_string(&wanted).unwrap().trim().replace("==", "-");
    let cache = std::env::home_dir().unwrap().join(".cache/keyrail/tools");
    let tools = std::env::var_os("KEYRAIL_TOOLS").map_or(cache, PathBuf::from);
    let folder = tools.join(name);
    if !folder.exists() {
        fs::create_dir_all(&tools).unwrap();
        let fresh = TempDir::new_in(&tools).unwrap();
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--root-user-action", "ignore", "--target"]).arg(fresh.path());
        pip.arg("--requirement").arg(&wanted);
        let installed = pip.output().expect("Python 3 with pip is needed");
        let said = String::from_utf8_lossy(&installed.stderr);
        assert!(installed.status.success(), "Python 3 with pip is needed, and a way to PyPI: {said}");
        // Fails where another test was faster, which is as good.
        let _ = fs::rename(fresh.path(), &folder);
    }
    folder
}

/// What the validator has to say of the document and of answers; nothing if all is well.
fn said(document: &Value, answers: &[Value]) -> String {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let mut check = Command::new("python3");
    check.arg(repository("tests/openapi/check.py")).arg(file("document.json", document.to_string()));
    check.arg(file("answers.json", json!(answers).to_string()));
    let output = check.env("PYTHONPATH", validator()).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said
}

#[test]
fn the_document_is_valid_and_answers_are_what_it_says() {
    let mut place = Place::new();
    let document = place.api.get("/openapi.json").ok();
    place.look(&document);
    assert!(place.answers.len() > 30, "{}", place.answers.len());
    assert_eq!(said(&document, &place.answers), "");

    // What it would say if they were not.
    let mut wrong = document.clone();
    wrong["paths"]["/v1/overview"]["get"]["responses"]["200"]["description"] = Value::Null;
    assert!(said(&wrong, &[]).contains("the document"), "{}", said(&wrong, &[]));
    let halted = place.answers.iter().find(|answer| answer["path"] == "/v1/halted").unwrap();
    assert_eq!(said(&document, std::slice::from_ref(halted)), "");
    let changes = [
        ("None is not of type 'string'", "/body/rows/0", "key", Value::Null),
        ("'many' is not of type 'integer'", "/body/rows/0", "attempts", json!("many")),
        ("'secret' was unexpected", "/body/rows/0", "secret", json!("x")),
        ("no status 207", "", "status", json!(207)),
        ("no answer of text/html", "", "media", json!("text/html")),
    ];
    for (says, within, member, value) in changes {
        let mut answer = halted.clone();
        answer.pointer_mut(within).unwrap()[member] = value;
        let said = said(&document, &[answer]);
        assert!(said.contains(says), "expected {says:?} in {said:?}");
    }
}
