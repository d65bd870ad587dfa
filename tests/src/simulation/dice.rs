//! Chance that a seed decides: SplitMix64 (Steele, Lea, Flood, 2014). Our own, so that a seed means the same for ever.

/// Numbers from a seed.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Other numbers, independent of how many are drawn here later.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// Uniform in 0..1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub(super) fn hits(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Uniform from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// One of them.
    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.between(0, of.len() as u64 - 1) as usize].clone()
    }
}
