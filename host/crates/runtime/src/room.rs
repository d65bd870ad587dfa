//! Room for instances. What runs out first in the pool are core instances: a Rust component has 3, a JavaScript one 4, a
//! Python one 14. So a place is counted in them. A full room is nobody's fault: whoever finds none waits, and uses no try.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Core instances that are counted for each of `instances_max`: what a JavaScript component has.
const CORE_INSTANCES_EACH: u32 = 4;

/// The room of a runtime.
#[derive(Debug)]
pub(crate) struct Room {
    instances: Arc<Semaphore>,
    core_instances: Arc<Semaphore>,
    core_instances_max: u32,
}

/// The place of one instance: given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _instance: OwnedSemaphorePermit,
    _core_instances: OwnedSemaphorePermit,
    _of_handler: OwnedSemaphorePermit,
}

/// The core instances that a room for so many instances has.
pub(crate) fn core_instances_max(instances_max: u32) -> u32 {
    instances_max.saturating_mul(CORE_INSTANCES_EACH)
}

impl Room {
    pub(crate) fn new(instances_max: u32) -> Self {
        let core_instances_max = core_instances_max(instances_max);
        Self {
            instances: Arc::new(Semaphore::new(instances_max as usize)),
            core_instances: Arc::new(Semaphore::new(core_instances_max as usize)),
            core_instances_max,
        }
    }

    /// How many instances there are.
    pub(crate) fn taken(&self, instances_max: u32) -> u64 {
        (instances_max as usize).saturating_sub(self.instances.available_permits()) as u64
    }

    /// A place for an instance of so many core instances, of a handler with this room of its own.
    pub(crate) fn take(&self, core_instances: u32, of_handler: &Arc<Semaphore>) -> Option<Place> {
        // One that is larger than the whole room may have it alone; the pool has as much beside it.
        let parts = core_instances.clamp(1, self.core_instances_max);
        Some(Place {
            _of_handler: of_handler.clone().try_acquire_owned().ok()?,
            _instance: self.instances.clone().try_acquire_owned().ok()?,
            _core_instances: self.core_instances.clone().try_acquire_many_owned(parts).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_core_instances() {
        let room = Room::new(10); // 40 core instances
        let many = Arc::new(Semaphore::new(100));
        let held: Vec<_> = (0..2).map(|_| room.take(14, &many).unwrap()).collect();
        assert!(room.take(14, &many).is_none(), "28 of 40 are taken");
        let small: Vec<_> = (0..4).map(|_| room.take(3, &many).unwrap()).collect();
        assert!(room.take(3, &many).is_none());
        drop(held);
        drop(small);
        assert!((0..10).map(|_| room.take(3, &many)).collect::<Option<Vec<_>>>().is_some());
    }

    #[test]
    fn what_was_refused_takes_nothing() {
        let room = Room::new(2);
        let one = Arc::new(Semaphore::new(1));
        let held = room.take(8, &one).unwrap();
        assert!(room.take(1, &one).is_none(), "the handler's own limit");
        assert!(room.take(1, &Arc::new(Semaphore::new(5))).is_none(), "the room's");
        drop(held);
        assert!(room.take(100, &one).is_some(), "larger than the room, and alone");
    }
}
