//! Which hosts a grant of HTTP means, and how far into the network it reaches.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `api.example.org`, `*.example.org` (every name below, not the name itself), `10.0.0.5` or `[fd00::5]`, each with an optional
/// `:PORT`. Without one the standard port of the scheme is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    /// One name, in lower case.
    Name(String),
    /// Every name that ends in a dot and this.
    Below(String),
    Address(IpAddr),
}

/// The addresses that a name may lead to. Who grants a whole domain does not know its names, and a name's owner can point it
/// anywhere; so the less a grant says, the less of the operator's own network it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Public addresses: the grant is `*.domain`.
    Public,
    /// Private ones and this machine too, but none of the link (cloud metadata): the grant is the name.
    Named,
    /// This address whatever it is: the grant is the address.
    Literal,
}

impl HostPattern {
    /// Reads a pattern; otherwise what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no host; write \"api.example.org\", \"*.example.org\" or an address, with \":PORT\" if needed"
            )
        };
        let (host, port) = split_port(text).ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = IpAddr::from_str(bare)
            && address.is_ipv6() == host.starts_with('[')
        {
            return Ok(Self { host: Host::Address(address), port });
        }
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        // A last label of digits alone would be read as an old way to write an address.
        let ends_in_digits =
            name.rsplit('.').next().is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
        if name.len() > 253 || !name.split('.').all(is_label) || ends_in_digits {
            return Err(wrong());
        }
        let lower = name.to_ascii_lowercase();
        let host = if name.len() == host.len() { Host::Name(lower) } else { Host::Below(lower) };
        Ok(Self { host, port })
    }

    /// How far a request to this host and port may reach, if the pattern means them. `host` as it stands in a URL.
    pub fn admits(&self, host: &str, port: u16, standard_port: u16) -> Option<Reach> {
        if port != self.port.unwrap_or(standard_port) {
            return None;
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        match &self.host {
            Host::Name(name) => (*name == host).then_some(Reach::Named),
            Host::Below(domain) => is_below(&host, domain).then_some(Reach::Public),
            Host::Address(address) => {
                let bare = host.trim_start_matches('[').trim_end_matches(']');
                (IpAddr::from_str(bare) == Ok(*address)).then_some(Reach::Literal)
            }
        }
    }

    /// Whether everything that the other one means is meant by this one too.
    pub fn covers(&self, other: &Self) -> bool {
        let host = match (&self.host, &other.host) {
            (Host::Below(domain), Host::Name(name)) => is_below(name, domain),
            (Host::Below(domain), Host::Below(name)) => name == domain || is_below(name, domain),
            (ours, theirs) => ours == theirs,
        };
        host && (self.port.is_none() || self.port == other.port)
    }
}

impl Reach {
    /// Whether an address may be connected to.
    pub fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Literal => true,
            Self::Named => !is_of_link(address),
            Self::Public => !is_of_link(address) && !is_private(address),
        }
    }
}

fn is_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// `host` and `host:port`; none when the port is none.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => Some((host, Some(port.parse().ok()?))),
        _ => Some((text, None)),
    }
}

/// What an IPv6 address that carries an IPv4 one leads to.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    match segments {
        // NAT64
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))),
        // 6to4
        [0x2002, high, low, ..] => Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))),
        _ => address.to_ipv4_mapped(),
    }
}

/// Addresses of the link itself, of nobody and of many: cloud metadata is at one of them.
fn is_of_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_link_local() || v4.is_multicast() || v4.is_broadcast() || v4.octets()[0] == 0 || v4.octets()[0] >= 240
        }
        IpAddr::V6(v6) => match carried(v6) {
            Some(v4) => is_of_link(v4.into()),
            None => v6.is_unicast_link_local() || v6.is_multicast() || v6.is_unspecified() || is_metadata(v6),
        },
    }
}

/// The metadata service of a large cloud has a private IPv6 address.
fn is_metadata(address: Ipv6Addr) -> bool {
    address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            v4.is_private()
                || v4.is_loopback()
                || v4.is_documentation()
                // Of carriers, of protocols, of measurements.
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && c == 0)
                || (a == 198 && (b == 18 || b == 19))
        }
        IpAddr::V6(v6) => match carried(v6) {
            Some(v4) => is_private(v4.into()),
            None => {
                v6.is_loopback()
                    || v6.is_unique_local()
                    || v6.segments()[0] == 0
                    || v6.segments()[..2] == [0x2001, 0xdb8]
            }
        },
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => f.write_str(name)?,
            Host::Below(domain) => write!(f, "*.{domain}")?,
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Host::Address(address) => write!(f, "{address}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        HostPattern::parse(text).unwrap()
    }

    #[test]
    fn a_pattern_means_what_it_says_and_no_more() {
        assert_eq!(pattern("api.example.org").admits("API.example.org", 443, 443), Some(Reach::Named));
        assert_eq!(pattern("api.example.org").admits("api.example.org", 8443, 443), None, "not the standard port");
        assert_eq!(pattern("api.example.org:8443").admits("api.example.org", 8443, 443), Some(Reach::Named));
        assert_eq!(pattern("api.example.org").admits("evil-api.example.org", 443, 443), None);
        assert_eq!(pattern("*.example.org").admits("a.b.example.org", 443, 443), Some(Reach::Public));
        for other in ["example.org", ".example.org", "evilexample.org", "example.org.evil.net"] {
            assert_eq!(pattern("*.example.org").admits(other, 443, 443), None, "{other}");
        }
        assert_eq!(pattern("10.0.0.5").admits("10.0.0.5", 80, 80), Some(Reach::Literal));
        assert_eq!(pattern("[fd00::5]:81").admits("[fd00::5]", 81, 80), Some(Reach::Literal));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in
            ["", "*", "*.", "http://a.b", "a b", "a:99999", "a..b", "10.1", "0x7f.1", "user@a.b", "a.b/c", "fd00::5"]
        {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
        for text in ["localhost", "*.example.org:8080", "[::1]:80", "10.0.0.5"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    #[test]
    fn the_less_a_grant_says_the_less_it_reaches() {
        let address = |text: &str| IpAddr::from_str(text).unwrap();
        for public in ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"] {
            assert!(Reach::Public.allows(address(public)), "{public}");
        }
        for private in [
            "10.0.0.5",
            "127.0.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "::1",
            "fd00::1",
            "::ffff:10.0.0.5",
            "64:ff9b::a00:5",
        ] {
            assert!(!Reach::Public.allows(address(private)), "{private}");
            assert!(Reach::Named.allows(address(private)), "{private}");
        }
        for link in
            ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1", "::", "::ffff:169.254.169.254", "fd00:ec2::254"]
        {
            assert!(!Reach::Named.allows(address(link)), "{link}");
            assert!(Reach::Literal.allows(address(link)), "{link}");
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        assert!(pattern("*.example.org").covers(&pattern("a.example.org:81")));
        assert!(pattern("*.example.org").covers(&pattern("*.b.example.org")));
        assert!(!pattern("*.example.org:80").covers(&pattern("a.example.org")));
        assert!(!pattern("a.example.org").covers(&pattern("*.example.org")));
    }
}
