//! Panics of the simulated hosts: they are caught by the engine or by tokio, and would otherwise be seen by nobody.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    /// None while no simulation runs on this thread.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// From here on panics of this thread are kept, not printed.
pub(super) fn keep() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let kept = PANICS.with_borrow_mut(|panics| panics.as_mut().map(|panics| panics.push(info.to_string())));
            if kept.is_none() {
                before(info);
            }
        }));
    });
    PANICS.set(Some(vec![]));
}

/// Those that were kept since.
pub(super) fn take() -> Vec<String> {
    PANICS.with_borrow_mut(|panics| panics.as_mut().map(std::mem::take).unwrap_or_default())
}

/// Panics are printed again.
pub(super) fn release() {
    PANICS.set(None);
}
