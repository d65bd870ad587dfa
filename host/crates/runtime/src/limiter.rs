//! The memory and table limits of one instance, and whether it ran into one.

use wasmtime::ResourceLimiter;

use crate::limits::Limits;

/// Memories, tables and core instances that one component may have: far above what toolchains make.
const ITEMS_MAX: usize = 64;

/// Refuses growth over the limits and remembers that it did.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_max_bytes: usize,
    table_elements_max: usize,
    /// Of all memories.
    memory_bytes: usize,
    /// What was refused since the last `take_refused`.
    refused: Option<String>,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        let size = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            memory_max_bytes: size(limits.memory_max_bytes),
            table_elements_max: size(limits.table_elements_max),
            memory_bytes: 0,
            refused: None,
        }
    }

    /// Bytes of all memories. They only grow.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes as u64
    }

    /// What was refused since the last time that this was asked.
    pub(crate) fn take_refused(&mut self) -> Option<String> {
        self.refused.take()
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // `current` is 0 for a new memory, so the sum stays right over all of them.
        let total = self.memory_bytes.saturating_sub(current).saturating_add(desired);
        if total > self.memory_max_bytes || maximum.is_some_and(|maximum| desired > maximum) {
            let limit = self.memory_max_bytes.min(maximum.unwrap_or(usize::MAX));
            self.refused = Some(format!("memory of {total} bytes was asked for; {limit} are allowed"));
            return Ok(false);
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.table_elements_max || maximum.is_some_and(|maximum| desired > maximum) {
            let limit = self.table_elements_max.min(maximum.unwrap_or(usize::MAX));
            self.refused = Some(format!("a table of {desired} elements was asked for; {limit} are allowed"));
            return Ok(false);
        }
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.refused.get_or_insert_with(|| format!("memory was asked for that could not be had: {error:#}"));
        Ok(())
    }

    fn instances(&self) -> usize {
        ITEMS_MAX
    }

    fn tables(&self) -> usize {
        ITEMS_MAX
    }

    fn memories(&self) -> usize {
        ITEMS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { memory_max_bytes: 100, table_elements_max: 10, ..Limits::default() }
    }

    #[test]
    fn the_memory_limit_counts_all_memories() {
        let mut limiter = Limiter::new(&limits());
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        assert!(!limiter.memory_growing(60, 61, None).unwrap());
        assert!(limiter.take_refused().unwrap().contains("101 bytes"));
        assert!(limiter.take_refused().is_none());
    }

    #[test]
    fn the_table_limit_acts() {
        let mut limiter = Limiter::new(&limits());
        assert!(limiter.table_growing(0, 10, None).unwrap());
        assert!(!limiter.table_growing(10, 11, None).unwrap());
        assert!(limiter.take_refused().is_some());
    }
}
