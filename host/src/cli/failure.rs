//! How commands end: exit codes, and errors as one line with the next step.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use keyrail::access::AccessError;
use keyrail::config::ConfigError;
use keyrail::engine::StartError;
use keyrail_broker::Error;

/// Exit codes, as `keyrail --help` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// Something stands still that an operator must look at.
    Halted = 3,
    /// The broker is away or cannot be used.
    Broker = 4,
    /// Refused input.
    Refused = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Arguments that do not make sense.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Input that is refused: a bad line, a handler.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// The broker is away.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Away(pub(crate) String);

/// A file of the command line that cannot be read, and what to do about it.
pub(crate) fn cannot_read<'a>(path: &'a Path, next: &'a str) -> impl Fn(io::Error) -> anyhow::Error + 'a {
    move |error| anyhow::anyhow!("cannot read {}: {error}; {next}", path.display())
}

/// One that cannot be written.
pub(crate) fn cannot_write(path: &Path) -> impl Fn(io::Error) -> anyhow::Error + '_ {
    move |error| {
        let shown = path.display();
        anyhow::anyhow!("cannot write {shown}: {error}; is its folder there and yours, and has the disk room?")
    }
}

/// Prints the error and finds its exit code.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    if is_broken_pipe(error) {
        return Exit::Done;
    }
    eprintln!("keyrail: {}", super::text::typed(&one_line(&format!("{error:#}"))));
    exit_of(error)
}

fn exit_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if cause.is::<Usage>() || cause.is::<ConfigError>() {
            return Exit::Usage;
        }
        if cause.is::<Refused>() {
            return Exit::Refused;
        }
        if cause.is::<Away>() {
            return Exit::Broker;
        }
        match cause.downcast_ref() {
            Some(AccessError::Unavailable(_)) => return Exit::Broker,
            Some(AccessError::Refused(_) | AccessError::NotAccepted(_)) => return Exit::Refused,
            Some(AccessError::Usage(_)) => return Exit::Usage,
            Some(AccessError::Failed(_)) | None => {}
        }
        if let Some(Error::Unavailable(_) | Error::Unusable(_)) = cause.downcast_ref() {
            return Exit::Broker;
        }
        if let Some(StartError::Broker(Error::Unavailable(_) | Error::Unusable(_))) = cause.downcast_ref() {
            return Exit::Broker;
        }
        if let Some(StartError::NotRegistered(_)) = cause.downcast_ref() {
            return Exit::Refused;
        }
    }
    Exit::Failed
}

/// The result of printing, where the exit code says more than the print: a reader that is gone changes nothing.
pub(crate) fn printed(result: anyhow::Result<()>) -> anyhow::Result<()> {
    result.or_else(|error| if is_broken_pipe(&error) { Ok(()) } else { Err(error) })
}

/// A reader that has seen enough (`| head`) is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    error.chain().filter_map(|cause| cause.downcast_ref()).any(broken_pipe)
}

/// Text from elsewhere (a guest's error, a file's bytes) must not break lines or steer the terminal.
pub(crate) fn one_line(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_decides_the_exit_code() {
        let away = || AccessError::Unavailable("x".into());
        assert_eq!(exit_of(&anyhow::Error::from(away()).context("while publishing")), Exit::Broker);
        assert_eq!(exit_of(&Refused("x".into()).into()), Exit::Refused);
        assert_eq!(exit_of(&Usage("x".into()).into()), Exit::Usage);
        assert_eq!(exit_of(&anyhow::anyhow!("x")), Exit::Failed);
    }

    #[test]
    fn a_broken_pipe_is_no_failure() {
        let error = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(report(&anyhow::Error::from(error).context("cannot print")), Exit::Done);
    }

    #[test]
    fn text_from_elsewhere_stays_on_one_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m\n"), "a b [31m");
    }
}
