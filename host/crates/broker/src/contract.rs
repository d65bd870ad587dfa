//! One suite for every broker: what the traits promise, as stories.
//!
//! [`contract_tests!`](crate::contract_tests) makes a test of each case. A case gets a fresh broker and knows it by the
//! traits only; nothing in it is timed, and no case waits for anything but a condition, with a deadline.
//!
//! ```text
//! async fn subject() -> Subject { Subject::new(Arc::new(MyBroker::start().await)) }
//! keyrail_broker::contract_tests!(subject);
//! ```

// This is test code that happens to be a library: it ends by panicking, and its names are its documentation.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, missing_docs)]

pub mod catalog;
pub mod housekeeping;
pub mod inspect;
pub mod lanes;
pub mod log;
pub mod looking;
pub mod managers;
pub mod members;
pub mod modules;
pub mod operate;
pub mod ownership;
pub mod pausing;
pub mod publishing;
pub mod ready;
pub mod router;
pub mod settling;
pub mod shared;
pub mod story;
pub mod words;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use keyrail_ordering::EntryRef;

use crate::Broker;

pub use story::Story;

/// Makes a stored entry unreadable, behind the broker's back.
pub type Spoil = Box<dyn Fn(EntryRef) -> BoxFuture<'static, ()> + Send + Sync>;

/// A broker to be tested: empty, and nobody else's.
pub struct Subject {
    pub broker: Arc<dyn Broker>,
    /// None where an entry cannot be made unreadable.
    pub spoil: Option<Spoil>,
    /// Whatever must live as long as the broker: its server, its folder.
    pub keep: Box<dyn Any + Send + Sync>,
}

impl Subject {
    pub fn new(broker: Arc<dyn Broker>) -> Self {
        Self { broker, spoil: None, keep: Box::new(()) }
    }

    pub fn with_spoil(mut self, spoil: Spoil) -> Self {
        self.spoil = Some(spoil);
        self
    }

    pub fn keeping(mut self, keep: impl Any + Send + Sync) -> Self {
        self.keep = Box::new(keep);
        self
    }
}

/// How long one case may take: a broker that makes no progress fails it, and does not hang it.
const CASE_MAX: Duration = Duration::from_mins(1);

pub async fn in_time(case: impl Future<Output = ()>) {
    tokio::time::timeout(CASE_MAX, case).await.unwrap_or_else(|_| panic!("the case did not end within {CASE_MAX:?}"));
}

/// One `#[tokio::test]` for each case; `$make` is an `async fn() -> Subject`.
#[macro_export]
macro_rules! contract_tests {
    ($make:ident) => {
        $crate::contract_tests! { @modules $make,
            publishing {
                entries_come_in_publish_order_with_contiguous_ids
                an_event_comes_back_as_it_was_published
                a_repeated_id_is_answered_with_its_first_entry
                an_id_that_repeats_within_a_batch_is_one_event
                a_window_of_zero_remembers_nothing
                ids_are_remembered_for_each_category_alone
                an_old_key_field_is_stale
                the_first_refusal_ends_the_batch
                data_that_is_no_object_is_refused
            }
            ownership {
                a_held_partition_names_its_holder
                generations_grow_with_each_change_of_hands
                a_released_owner_is_fenced
                an_owner_that_was_taken_over_is_fenced
                a_late_release_takes_nothing_from_the_next_owner
                only_held_leases_are_renewed
                what_was_read_ahead_goes_back_with_a_release
                acquire_reads_no_more_than_asked
                acquire_tells_where_the_group_stands
                a_crash_counts_and_a_release_does_not
                an_owner_that_dies_with_empty_hands_is_one_crash_at_most
                crashes_and_attempts_are_cleared_when_the_head_is_settled
            }
            log {
                take_brings_each_entry_once_in_order
                a_recovering_take_brings_what_is_pending_first
                a_recovering_take_brings_the_attempts
                a_try_is_recorded_once
                attempts_survive_a_change_of_hands
                only_the_head_fails
                a_halted_partition_stands_still_alone
                only_the_head_halts
                two_groups_go_their_own_ways
                an_unreadable_entry_is_its_partitions_business_alone
            }
            settling {
                another_than_the_head_is_not_settled
                an_entry_that_was_not_delivered_is_not_settled
                state_and_emits_land_with_the_settlement
                a_fenced_commit_lands_nothing
                small_state_comes_with_acquire_and_large_does_not
                removed_state_is_gone
                a_commit_brings_the_next_entries
                several_entries_are_settled_at_once
                several_entries_with_a_gap_are_not_settled
                the_lease_goes_only_when_nothing_is_left
                settled_entries_stay_for_the_other_group
            }
            lanes {
                the_backfill_is_served_after_the_primary
                a_backfill_head_stays_the_head
                a_backfill_head_that_failed_stays_the_head_for_the_next_owner
            }
            ready {
                a_key_is_ready_while_it_has_unsettled_entries
                a_take_that_finds_nothing_leaves_the_ready_set
                a_bell_rings_when_a_key_becomes_ready_and_only_then
                a_bell_rings_for_an_owner_that_had_caught_up
                bells_are_heard_by_those_who_asked
                a_release_rings_if_work_is_left
                owned_keys_are_not_offered
                a_key_whose_retry_is_not_due_is_not_offered
                a_halted_key_does_not_become_ready
                a_large_ready_set_is_read_in_parts
            }
            router {
                records_are_routed_in_the_order_of_their_commits
                a_record_that_cannot_be_published_is_abandoned_and_the_rest_goes_on
                routing_says_whether_there_is_more
                an_emit_that_repeats_is_published_once
                many_routers_keep_the_order
                emits_ring_the_bell_of_the_outbox
            }
            catalog {
                the_catalog_is_set_only_over_the_version_that_was_read
                a_key_field_does_not_change_under_entries
                a_new_group_sees_what_is_there
                a_group_that_is_registered_again_starts_nothing_anew
            }
            inspect {
                a_row_shows_where_a_partition_stands
                a_row_shows_attempts_and_why_it_stands_still
                partitions_are_paged_without_loss_or_repeat
                states_are_paged_without_loss_or_repeat
                a_snapshot_has_the_state_and_the_entries_from_one_on
            }
            looking {
                the_lag_counts_what_waits_and_since_when
                what_stands_still_counts_in_the_lag
                the_lag_of_many_keys_is_reckoned_from_a_sample
                the_lag_of_a_category_without_keys_is_its_unsettled_entries
                what_was_published_is_counted_for_each_category
                partitions_are_found_by_key
                partitions_are_found_by_how_they_stand
                a_search_among_many_keys_goes_through_all_of_them
                a_process_manager_is_searched_too
                streams_are_read_by_one_who_owns_nothing
            }
            members {
                a_member_is_there_as_it_told
                a_member_that_leaves_is_gone_at_once
                a_member_whose_time_is_over_is_gone
                the_bell_rings_for_what_the_others_must_know
            }
            modules {
                a_module_comes_back_as_it_was_stored
                a_module_that_is_dropped_is_gone
                the_bell_rings_when_the_catalog_is_set
                the_versions_that_handled_a_partition_are_on_record
                a_fenced_commit_leaves_no_version
                what_changes_the_catalog_goes_on_record
            }
            managers {
                a_manager_reads_every_stream_of_its_value_each_in_order
                a_manager_has_one_head_whatever_the_streams
                streams_of_a_manager_take_turns
                a_stream_that_is_read_ahead_starves_no_other
                a_managers_turns_go_on_with_the_next_owner
                a_managers_backfill_comes_when_every_primary_is_empty
                a_manager_takes_over_what_was_pending_whatever_the_stream
                a_manager_halts_by_stream_and_entry
                a_managers_ready_set_has_its_values
                another_group_goes_its_own_way_on_a_managers_stream
                a_managers_state_is_of_the_value
            }
            operate {
                the_head_is_told_with_everything_that_is_known
                c041_a_halt_outlives_its_owner_and_a_retry_gives_a_full_budget
                a_retry_of_a_head_that_waits_makes_it_due_at_once
                a_skip_settles_the_head_and_fences_its_owner
                a_head_that_nobody_was_given_yet_is_skipped
                only_the_head_is_acted_on
                a_head_that_is_set_aside_is_kept_with_what_is_known
                an_unreadable_head_is_set_aside_too
                a_redriven_event_comes_last_and_for_its_group_alone
                a_purged_letter_is_gone_and_its_id_never_comes_again
                dead_letters_are_paged_oldest_first_within_a_key
                what_stands_still_is_listed
                every_action_is_on_record_newest_first
                an_action_beside_a_running_owner_is_one_or_the_other
            }
            pausing {
                a_paused_key_is_taken_from_its_owner_and_offered_to_nobody
                a_paused_category_is_taken_from_all_its_owners
                an_action_on_a_paused_head_leaves_it_paused
            }
            shared {
                each_entry_goes_to_one_of_two_owners
                anothers_delivery_is_fenced_and_lands_nothing
                a_delivery_that_was_not_kept_goes_to_another_and_counts_a_crash
                a_delivery_that_is_kept_stays
                a_failed_try_comes_again_when_it_is_due_for_any_owner
                a_short_wait_ends
                what_is_returned_counts_nothing
                poison_is_set_aside_and_the_rest_goes_on
                emits_land_with_a_shared_settlement
                state_has_no_place_in_a_shared_settlement
                two_groups_each_get_every_shared_entry
                what_is_settled_out_of_order_takes_nothing_else_with_it
                a_group_that_comes_late_gets_the_shared_entries_that_are_kept
                a_paused_category_gives_nothing_and_fences_what_is_out
                a_bell_says_to_look_at_a_shared_source
            }
            housekeeping {
                c024_what_all_groups_settled_is_dropped_and_then_forgotten
                what_was_published_after_the_look_is_not_forgotten
                what_is_owned_or_stands_still_is_not_idle
                both_lanes_of_a_key_are_forgotten_together
                state_outlives_its_stream
                idle_streams_are_paged_without_loss_or_repeat
            }
        }
    };
    (@modules $make:ident, $($module:ident { $($case:ident)* })*) => {
        $(mod $module {
            $(#[tokio::test]
            async fn $case() {
                let subject = super::$make().await;
                $crate::contract::in_time($crate::contract::$module::$case(subject)).await;
            })*
        })*
    };
}

#[cfg(test)]
mod tests {
    /// A case that is in no list would never run.
    #[test]
    fn every_case_is_in_the_list() {
        let list = include_str!("contract.rs");
        let files = [
            include_str!("contract/catalog.rs"),
            include_str!("contract/inspect.rs"),
            include_str!("contract/lanes.rs"),
            include_str!("contract/log.rs"),
            include_str!("contract/looking.rs"),
            include_str!("contract/managers.rs"),
            include_str!("contract/ownership.rs"),
            include_str!("contract/publishing.rs"),
            include_str!("contract/ready.rs"),
            include_str!("contract/router.rs"),
            include_str!("contract/settling.rs"),
            include_str!("contract/members.rs"),
            include_str!("contract/modules.rs"),
            include_str!("contract/pausing.rs"),
            include_str!("contract/operate.rs"),
            include_str!("contract/shared.rs"),
            include_str!("contract/housekeeping.rs"),
        ];
        for line in files.iter().flat_map(|file| file.lines()) {
            let Some(case) = line.strip_prefix("pub async fn ") else { continue };
            let (case, _) = case.split_once('(').unwrap();
            assert!(list.lines().any(|line| line.trim() == case), "{case} is not in contract_tests!");
        }
    }
}
