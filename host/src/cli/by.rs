//! Who does something, and why: what goes on record with every action.

use std::fs;

use keyrail::service::WhoAndWhy;

const HOST_NAME_MAX_CHARS: usize = 40;

/// Who, and why.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Why; goes on record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    who: Who,
}

/// Who.
#[derive(clap::Args)]
pub(crate) struct Who {
    /// Who does it; goes on record [default: your user name and this machine]
    #[arg(long = "as", value_name = "NAME")]
    who: Option<String>,
}

impl Args {
    pub(crate) fn who_and_why(&self) -> WhoAndWhy {
        self.who.because(&self.reason)
    }
}

impl Who {
    pub(crate) fn because(&self, reason: &str) -> WhoAndWhy {
        let user = || std::env::var("USER").ok().filter(|user| !user.is_empty());
        let who = self.who.clone().unwrap_or_else(|| {
            format!(
                "{}@{}",
                user().unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw())),
                host_name()
            )
        });
        WhoAndWhy { who, reason: reason.into() }
    }
}

/// The machine's name, plain.
pub(crate) fn host_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let host: String = host.trim().chars().filter(plain).take(HOST_NAME_MAX_CHARS).collect();
    if host.is_empty() { "host".into() } else { host }
}
