-- keyrail_6_names: the names that this library builds, for the test that compares them with redis/keyspace.rs.
--
-- Keys:      none
-- Arguments: collection, key, group, event id
-- Answer:    the names
-- Prevents:  the two drifting apart.

local function keyrail_names(_, args)
  local collection, key, group, id = args[1], args[2], args[3], args[4]
  local scope = scope_name(collection, key)
  return {
    scope, lease_name(scope, group), attempts_name(scope, group), halt_name(scope, group), state_name(scope, group),
    index_name(collection), groups_name(collection), seen_name(collection, id), ready_name(collection, group),
    halted_name(collection, group), owners_name(collection, group), states_name(collection, group),
    entry_attempts_name(collection, group), waiting_name(collection, group), turns_name(collection, group),
    versions_name(collection, group),
    paused_name(collection),
    dlqs_name(collection), dlq_name(collection, key), dlq_name(collection, ''),
    EPOCH, GENERATION, CATALOG, OUTBOX, ABANDONED, AUDIT, PAUSED_CATEGORIES, PUBLISHED_COUNTS,
  }
end

redis.register_function{ function_name = 'keyrail_6_names', callback = keyrail_names, flags = { 'no-writes' } }
