//! `keyrail members`: which hosts are there, and how even their shares are.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::Result;
use keyrail::access::{self, Need};
use keyrail::config::Config;
use keyrail_ordering::Member;

use super::failure::{Exit, one_line};
use super::numbers::{count, grouped};
use super::table;

/// List the hosts that are up: what they run, how many keys they own, how much they did
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail members\n  keyrail members --json | jq -s 'map(.owned) | add'")]
pub(crate) struct Args {
    /// Print one JSON object a host
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let members = access::open(config, Need::Existing).await?.members().await?;
    let mut out = io::stdout().lock();
    if args.json {
        for member in &members {
            writeln!(out, "{}", serde_json::to_string(member)?)?;
        }
    } else {
        show(&mut out, &members)?;
    }
    Ok(Exit::Done)
}

fn show(out: &mut impl Write, members: &[Member]) -> io::Result<()> {
    if members.is_empty() {
        return writeln!(out, "no host is up: nothing runs; start one with keyrail run");
    }
    let cells = |member: &Member| {
        vec![
            member.owner.to_string(),
            groups(member),
            format!("{} of {}", grouped(member.owned), grouped(member.capacity)),
            member.running.to_string(),
            grouped(member.settled),
            one_line(&member.release),
            if member.leaving { "leaving".into() } else { "up".into() },
        ]
    };
    let header = ["host", "handlers", "owned", "running", "settled", "release", "state"];
    let right = ["owned", "running", "settled"];
    table::write(out, &header, &right, &members.iter().map(cells).collect::<Vec<_>>())?;
    writeln!(out)?;
    shares(members).iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn groups(member: &Member) -> String {
    member.groups.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// How even the shares are: a line for each set of handlers, since only hosts that run the same share the same keys.
fn shares(members: &[Member]) -> Vec<String> {
    let mut sets: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for member in members.iter().filter(|member| !member.leaving) {
        sets.entry(groups(member)).or_default().push(member.owned);
    }
    let several = sets.len() > 1;
    let line = |(groups, owned): (String, Vec<u64>)| {
        let total: u64 = owned.iter().sum();
        let of = if several { format!(" of {groups}") } else { String::new() };
        let own = format!("{}{of}: {} owned now", count(owned.len() as u64, "host"), count(total, "partition"));
        let (Some(least), Some(most)) = (owned.iter().min(), owned.iter().max()) else { return own };
        if owned.len() < 2 || total == 0 {
            return own;
        }
        let even = total as f64 / owned.len() as f64;
        let times = *most as f64 / even;
        format!(
            "{own}, {} to {} each; the largest share is {times:.2} times an even one",
            grouped(*least),
            grouped(*most)
        )
    };
    sets.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use keyrail_ordering::OwnerId;

    fn member(groups: &[&str], owned: u64, leaving: bool) -> Member {
        Member {
            owner: OwnerId::new("h"),
            groups: groups.iter().map(|group| group.parse().unwrap()).collect(),
            capacity: 256,
            owned,
            running: 0,
            settled: 0,
            release: "1".into(),
            leaving,
            held: vec![],
            hot: vec![],
        }
    }

    #[test]
    fn shares_are_compared_among_hosts_that_run_the_same() {
        let members = [member(&["a"], 30, false), member(&["a"], 10, false), member(&["a"], 99, true)];
        let even = "2 hosts: 40 partitions owned now, 10 to 30 each; the largest share is 1.50 times an even one";
        assert_eq!(shares(&members), [even]);
        let apart = [member(&["a"], 30, false), member(&["a", "b"], 1, false)];
        assert_eq!(shares(&apart), ["1 host of a: 30 partitions owned now", "1 host of a,b: 1 partition owned now"]);
        assert_eq!(shares(&[member(&["a"], 0, false), member(&["a"], 0, false)]), ["2 hosts: 0 partitions owned now"]);
    }
}
