//! The page of all commands.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};

const INTRODUCTION: &str = "\
# Commands

<!-- Made by `keyrail man --markdown`. Change the definitions in host/src/cli, then run `cargo xtask reference`. -->

`keyrail COMMAND --help` says the same. There are manual pages (`man keyrail`, `man keyrail-run`) and completions for shells
(`keyrail completions`).
";

/// All commands that are not hidden, in Markdown.
pub(super) fn markdown(mut command: Command) -> String {
    command = command.disable_help_subcommand(true);
    command.build();
    let mut page = String::from(INTRODUCTION);
    put(&mut page, &command, true);
    page
}

fn put(page: &mut String, command: &Command, is_root: bool) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).replace('-', " ");
    let name = command.get_bin_name().map_or(name, String::from);
    let inner: Vec<_> = command.get_subcommands().filter(|inner| !inner.is_hide_set()).collect();
    let mut add = |text: &str| page.push_str(text);
    add(&format!("\n## {}\n\n", if is_root { "keyrail".to_string() } else { format!("`{name}`") }));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        add(&format!("{}\n", prose(about)));
    }
    let usage = command.clone().render_usage().to_string();
    add(&format!("\n```\n{}\n```\n", usage.trim_start_matches("Usage: ").trim()));
    // What holds for every command is told once.
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set() && !is_help(arg));
    let arguments: Vec<_> = arguments.filter(|arg| is_root || !arg.is_global_set()).collect();
    if !arguments.is_empty() {
        let heading = if is_root { "Options of every command:\n\n" } else { "" };
        add(&format!("\n{heading}"));
        for argument in arguments {
            add(&item(argument));
        }
    }
    if let Some(help) = command.get_after_long_help().or(command.get_after_help()) {
        add(&after(help));
    }
    for inner in inner {
        put(page, inner, false);
    }
}

fn is_help(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version)
}

/// One argument as an item of a list.
fn item(arg: &Arg) -> String {
    let values: Vec<_> = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let takes_value = arg.get_action().takes_values();
    let flags = [arg.get_short().map(|short| format!("-{short}")), arg.get_long().map(|long| format!("--{long}"))];
    let flags: Vec<_> = flags.into_iter().flatten().collect();
    let values = if takes_value { values.join(" ") } else { String::new() };
    let name = [flags.join(", "), values].join(" ").trim().to_string();
    let mut text = arg.get_long_help().or(arg.get_help()).map(prose).unwrap_or_default().replace("\n\n", "\n\n  ");
    let choices: Vec<_> = arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if takes_value && !choices.is_empty() {
        // A String takes all that is written to it.
        let _ = write!(text, " One of {}.", choices.join(", "));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value && !defaults.is_empty() {
        let _ = write!(text, " Default: `{}`.", defaults.join(" "));
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(text, " Variable: `{}`.", variable.to_string_lossy());
    }
    format!("- `{name}`: {text}\n")
}

/// Text of a definition: its paragraphs, with a full stop at the end of the first, which has none there.
fn prose(text: &StyledStr) -> String {
    let text = text.to_string();
    let paragraphs = text.trim().split("\n\n").map(|paragraph| {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ").replace('<', "&lt;");
        let ends = paragraph.ends_with(['.', ':', '?', '!', ']']);
        if ends { paragraph } else { paragraph + "." }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// What stands below the help: lists are shown as they are, sentences as sentences.
fn after(help: &StyledStr) -> String {
    let mut out = String::new();
    for block in help.to_string().trim_end().split("\n\n") {
        let (head, rest) = block.split_once('\n').unwrap_or((block, ""));
        let shown = match head.strip_suffix(':') {
            Some(_) if !rest.is_empty() => format!("\n{head}\n\n```\n{}\n```\n", unindented(rest)),
            _ => format!("\n{}\n", block.replace('<', "&lt;")),
        };
        out.push_str(&shown);
    }
    out
}

fn unindented(text: &str) -> String {
    text.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_once_with_its_arguments() {
        let command = Command::new("tool")
            .about("A tool")
            .arg(Arg::new("set").long("set").value_name("X").global(true).help("Set something"))
            .subcommand(
                Command::new("go")
                    .about("Go there\n\nAnd back.")
                    .arg(Arg::new("where").value_name("PLACE").help("Where to <go>"))
                    .after_help("Examples:\n  tool go x | less\n\nEnds with 3 if it is far."),
            )
            .subcommand(Command::new("secret").hide(true));
        let page = markdown(command);
        for part in [
            "## `tool go`\n\nGo there.\n\nAnd back.\n",
            "- `PLACE`: Where to &lt;go>.\n",
            "\nExamples:\n\n```\ntool go x | less\n```\n\nEnds with 3 if it is far.\n",
        ] {
            assert!(page.contains(part), "{part:?} is not in {page}");
        }
        assert_eq!(page.matches("--set X").count(), 1, "{page}");
        assert!(!page.contains("secret"), "{page}");
    }
}
