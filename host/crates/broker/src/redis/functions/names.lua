-- Names of keys, as redis/keyspace.rs builds them; a test compares the two. A scope is what a partition spans:
-- `order:client-123`, or `__pm__:{correlation}`. A collection is `order`, or `__pm__` for process managers.
local PM = '__pm__'
local EPOCH, GENERATION, CATALOG = '__epoch__', '__generation__', '__catalog__'
local OUTBOX, ABANDONED = '__outbox__', '__outbox_abandoned__'
local AUDIT, PAUSED_CATEGORIES, PUBLISHED_COUNTS = '__audit__', '__paused__', '__published__'
-- Fields of `{category}:__groups__` that are no groups.
local KEY_FIELD, BACKFILL = '__key_field__', '__backfill__'

local function scope_name(collection, key) return collection .. ':' .. key end
local function lease_name(scope, group) return scope .. ':__lease__:' .. group end
local function attempts_name(scope, group) return scope .. ':__attempts__:' .. group end
local function halt_name(scope, group) return scope .. ':__halt__:' .. group end
local function state_name(scope, group) return scope .. ':__state__:' .. group end

local function index_name(category) return category .. ':__partitions__' end
local function groups_name(category) return category .. ':__groups__' end
local function seen_name(category, id) return category .. ':__seen__:' .. id end
local function ready_name(collection, group) return collection .. ':__behind__:' .. group end
local function halted_name(collection, group) return collection .. ':__halted__:' .. group end
local function owners_name(collection, group) return collection .. ':__owners__:' .. group end
local function states_name(collection, group) return collection .. ':__states__:' .. group end
local function versions_name(collection, group) return collection .. ':__versions__:' .. group end
local function turns_name(collection, group) return collection .. ':__turns__:' .. group end
local function entry_attempts_name(category, group) return category .. ':__attempts__:' .. group end
local function waiting_name(category, group) return category .. ':__waiting__:' .. group end
local function paused_name(category) return category .. ':__paused__' end
local function dlqs_name(category) return category .. ':__dlqs__' end
local function dlq_name(category, key) return (key == '' and category or scope_name(category, key)) .. ':dlq' end
