//! What a broker finds out about the place where it keeps everything, for `keyrail doctor`.

/// How one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Nothing to do.
    Passed,
    /// It works, and something should be changed.
    Warned,
    /// It cannot be used so.
    Failed,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What, in a word or two.
    pub name: &'static str,
    /// How it came out.
    pub outcome: CheckOutcome,
    /// What was found, and what to change if anything; one line.
    pub says: String,
}

impl Check {
    /// Nothing to do.
    pub fn passed(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, outcome: CheckOutcome::Passed, says: says.into() }
    }

    /// It works, and something should be changed.
    pub fn warned(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, outcome: CheckOutcome::Warned, says: says.into() }
    }

    /// It cannot be used so.
    pub fn failed(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, outcome: CheckOutcome::Failed, says: says.into() }
    }
}
