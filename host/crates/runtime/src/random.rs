//! Random numbers that are the same in every try of an event: SHA-256 of a seed and a counter. Not secret: whoever knows the
//! group and the entry can compute them.

use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};
use wasmtime::component::HasData;
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

/// The most that a guest may ask for at once.
const BYTES_MAX: u64 = 1 << 20;

/// What a guest is given: a seeded stream of bytes, or by grant those of the system.
#[derive(Debug, Clone)]
pub(crate) enum Random {
    Seeded(Seeded),
    Real,
}

/// A seeded stream of bytes. Most calls want none, so the seed is hashed when the first is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Seeded {
    /// The parts of the seed, each behind its length.
    parts: Vec<u8>,
    seed: Option<[u8; 32]>,
    counter: u64,
    block: [u8; 32],
    /// How much of `block` is used.
    used: usize,
}

impl Random {
    /// From a seed in parts.
    pub(crate) fn seeded(parts: &[&[u8]]) -> Self {
        Self::Seeded(Seeded::new(parts))
    }

    /// Starts anew from this seed, unless it is the system's.
    pub(crate) fn reseed(&mut self, parts: &[&[u8]]) {
        if let Self::Seeded(seeded) = self {
            seeded.begin(parts);
        }
    }

    fn bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        if len > BYTES_MAX {
            wasmtime::bail!("the guest asked for {len} random bytes; at most {BYTES_MAX} are given at once");
        }
        match self {
            Self::Seeded(seeded) => Ok((0..len).map(|_| seeded.byte()).collect()),
            Self::Real => {
                let mut bytes = vec![0; len as usize]; // at most BYTES_MAX
                OsRng.try_fill_bytes(&mut bytes).map_err(wasmtime::Error::new)?;
                Ok(bytes)
            }
        }
    }

    fn number(&mut self) -> wasmtime::Result<u64> {
        let bytes = self.bytes(8)?;
        Ok(bytes.into_iter().fold(0, |number, byte| number << 8 | u64::from(byte)))
    }
}

impl Seeded {
    fn new(parts: &[&[u8]]) -> Self {
        let mut seeded = Self { parts: vec![], seed: None, counter: 0, block: [0; 32], used: 32 };
        seeded.begin(parts);
        seeded
    }

    /// From a seed in parts: `[a, b]` and `[ab]` differ.
    fn begin(&mut self, parts: &[&[u8]]) {
        self.parts.clear();
        for part in parts {
            self.parts.extend_from_slice(&(part.len() as u64).to_be_bytes());
            self.parts.extend_from_slice(part);
        }
        (self.seed, self.counter, self.used) = (None, 0, self.block.len());
    }

    fn byte(&mut self) -> u8 {
        if self.used == self.block.len() {
            let seed = self.seed.get_or_insert_with(|| Sha256::digest(&self.parts).into());
            let hash = Sha256::new().chain_update(*seed).chain_update(self.counter.to_be_bytes());
            self.block = hash.finalize().into();
            self.counter += 1;
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }
}

/// How the linker reaches it.
pub(crate) struct HasRandom;

impl HasData for HasRandom {
    type Data<'a> = &'a mut Random;
}

impl random::Host for Random {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.bytes(len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.number()
    }
}

impl insecure::Host for Random {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.bytes(len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.number()
    }
}

impl insecure_seed::Host for Random {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.number()?, self.number()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
        let draw = |parts: &[&[u8]]| Random::seeded(parts).bytes(100).unwrap();
        assert_eq!(draw(&[b"group", b"1-0"]), draw(&[b"group", b"1-0"]));
        assert_ne!(draw(&[b"group", b"1-0"]), draw(&[b"group", b"1-1"]));
        assert_ne!(draw(&[b"ab"]), draw(&[b"a", b"b"]));
    }

    #[test]
    fn a_giant_request_is_refused() {
        assert!(Random::seeded(&[]).bytes(u64::MAX).is_err());
        assert!(Random::Real.bytes(u64::MAX).is_err());
    }

    #[test]
    fn real_ones_differ_each_time() {
        assert_ne!(Random::Real.bytes(16).unwrap(), Random::Real.bytes(16).unwrap());
    }
}
