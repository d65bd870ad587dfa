//! Text from elsewhere, and commands to be typed, as they are shown.

use std::sync::OnceLock;

use super::failure::one_line;

/// Words that a shell takes as they are.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '@' | '%' | '+' | '=' | ',')
}

/// A word as a shell takes it.
pub(crate) fn word(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The broker as it was named on this command line: what the printed next commands need too.
static BROKER: OnceLock<String> = OnceLock::new();

/// To be called once, with what `--broker` said. An address with a password is not repeated on the screen.
pub(crate) fn remember_broker(address: &str) {
    if !address.contains('@') {
        // Only the first counts, and there is one.
        let _ = BROKER.set(address.into());
    }
}

/// Text with every `keyrail COMMAND` in it as it is to be typed here: with the broker that was named on this command line.
pub(crate) fn typed(text: &str) -> String {
    match BROKER.get() {
        Some(address) => name_broker(text, address),
        None => text.into(),
    }
}

fn name_broker(text: &str, address: &str) -> String {
    let mut out = text.to_string();
    for command in COMMANDS {
        let bare = format!("keyrail {command}");
        out = out.replace(&bare, &format!("keyrail --broker {} {command}", word(address)));
    }
    out
}

/// Commands that need a broker, as they stand in printed text.
const COMMANDS: [&str; 22] = [
    "deploy",
    "handlers",
    "promote ",
    "rollback ",
    "undeploy ",
    "head ",
    "halted",
    "dlq ",
    "pause ",
    "paused",
    "resume ",
    "audit",
    "members",
    "doctor",
    "partitions",
    "top",
    "tail",
    "state ",
    "publish",
    "register",
    "record",
    "run",
];

/// A command on the head of a partition.
pub(crate) fn head_command(verb: &str, category: &str, key: &str, group: &str) -> String {
    format!("keyrail head {verb} {} {} --group {}", word(category), word(key), word(group))
}

/// The first characters on one line.
pub(crate) fn cut(text: &str, max_chars: usize) -> String {
    let line = one_line(text);
    let mut shown: String = line.chars().take(max_chars).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

/// The first characters of an error, for a table: of a trap not the host's words for it, which are the same for each, but what
/// the guest wrote about it.
pub(crate) fn gist(error: &str, max_chars: usize) -> String {
    let written = error.strip_prefix("wasm trap: ").and_then(|trap| trap.split_once("; it wrote: "));
    let Some((_, written)) = written else { return cut(error, max_chars) };
    let panicked = written.strip_prefix("thread '").and_then(|thread| thread.split_once(" panicked at "));
    let told = panicked.map_or(written, |(_, told)| told);
    let told = told.rsplit_once("; in ").map_or(told, |(told, _frames)| told);
    // QuickJS's engine is a Rust program that panics with an uncaught error.
    let thrown =
        told.split_once("Exception { message: Some(\"").and_then(|(_, thrown)| thrown.split_once("\"), stack: "));
    cut(thrown.map_or(told, |(message, _)| message), max_chars)
}

/// All lines, each indented, without anything that steers a terminal.
pub(crate) fn indented(text: &str) -> String {
    let shown =
        |line: &str| format!("    {}", line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>());
    text.trim_end().lines().map(shown).collect::<Vec<_>>().join("\n")
}

/// An error whose end is a guest's backtrace (`…; in a < b < c`), one function a line.
pub(crate) fn frames_apart(error: &str) -> String {
    match error.rsplit_once("; in ") {
        Some((what, frames)) => format!("{what}\n  in {}", frames.replace(" < ", "\n  called by ")),
        None => error.into(),
    }
}

/// JSON over several lines. Works on the text, so that numbers and the order of names stay as they are.
pub(crate) fn pretty_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut in_text = false;
    let mut escaped = false;
    let mut chars = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = chars.next() {
        if in_text {
            out.push(c);
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            c if c.is_whitespace() => {}
            '{' | '[' => {
                out.push(c);
                while chars.peek().is_some_and(|next| next.is_whitespace()) {
                    chars.next();
                }
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                in_text = c == '"';
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_commands_name_the_broker_of_this_one() {
        let hint = "it is paused; see keyrail paused, or keyrail head show order 7";
        let typed =
            "it is paused; see keyrail --broker redis://h:1 paused, or keyrail --broker redis://h:1 head show order 7";
        assert_eq!(name_broker(hint, "redis://h:1"), typed);
        assert_eq!(name_broker("see keyrail --help", "redis://h:1"), "see keyrail --help");
    }

    #[test]
    fn a_backtrace_is_shown_one_function_a_line() {
        assert_eq!(frames_apart("wasm trap; in a::b < c"), "wasm trap\n  in a::b\n  called by c");
        assert_eq!(frames_apart("no trace, x < y"), "no trace, x < y");
    }

    #[test]
    fn the_gist_of_a_trap_is_what_the_guest_wrote() {
        let trap = |wrote: &str| format!("wasm trap: wasm `unreachable` instruction executed; it wrote: {wrote}");
        assert_eq!(
            gist(&trap("thread '<unnamed>' (1) panicked at src/lib.rs:3:9: too large; in a::b < c"), 60),
            "src/lib.rs:3:9: too large"
        );
        let thrown = "thread 'a' (1) panicked at x.rs:1:1: Failed: Exception(Exception { message: Some(\"too large\"), stack: None })";
        assert_eq!(gist(&trap(thrown), 60), "too large");
        assert_eq!(gist(&trap("ValueError: too large"), 10), "ValueError…");
        assert_eq!(gist("wasm trap: out of fuel", 60), "wasm trap: out of fuel");
        assert_eq!(gist("the file panicked at noon; it wrote: x", 60), "the file panicked at noon; it wrote: x");
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(word("client-7"), "client-7");
        assert_eq!(word("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(word(""), "''");
        assert_eq!(word("é"), "'é'");
    }

    #[test]
    fn json_is_spread_and_nothing_else_changes() {
        let json = r#"{"b":12345678901234567890.50,"a":{"x":[1, "},{:\"\\"],"e":{ },"l":[]}}"#;
        let spread = "{\n  \"b\": 12345678901234567890.50,\n  \"a\": {\n    \"x\": [\n      1,\n      \"},{:\\\"\\\\\"\n    ],\n    \"e\": {},\n    \"l\": []\n  }\n}";
        assert_eq!(pretty_json(json), spread);
        assert_eq!(pretty_json(&pretty_json(json)), spread);
    }

    #[test]
    fn text_from_elsewhere_does_not_steer_the_terminal() {
        assert_eq!(indented("a\u{1b}[31m\nb\t\n"), "    a [31m\n    b");
        assert_eq!((cut("abc", 3), cut("abcd\n", 3)), ("abc".into(), "abc…".into()));
    }
}
