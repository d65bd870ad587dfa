-- keyrail_publish: appends events in order; the public way to publish, from any language.
--
-- Keys:      one stream an event, in the order of the events: `order:client-123`
-- Arguments: ten an event: category, key ('' for a category that is not partitioned), key field ('' likewise), lane
--            ('' or 'backfill'), window in ms in which the event id is remembered (0: not), event id, type, version,
--            headers (JSON, '' for none), data (a JSON object)
-- Answer:    two values an event, up to and with the first refusal: 0 and the entry's id; 1 and the id of the entry that
--            the event id has already; 2 and the key field in force; 3 and why it cannot be written
-- Prevents:  see publish_one.lua; and a later event of a key getting in front of one that was refused.

local PUBLISH_VERSION = 5
local PUBLISH_FIELDS = 10

local function keyrail_publish(keys, args)
  if #keys == 0 or #args ~= #keys * PUBLISH_FIELDS then
    return redis.error_reply('ERR keyrail_publish takes ' .. PUBLISH_FIELDS .. ' arguments for each key')
  end
  local now, cache, answer = now_ms(), {}, {}
  for i = 1, #keys do
    local at = (i - 1) * PUBLISH_FIELDS
    local status, value = publish_one({
      stream = keys[i],
      category = args[at + 1],
      key = args[at + 2],
      key_field = args[at + 3],
      backfill = args[at + 4] ~= '',
      -- Whole: the server refuses a fraction, and would do so after the entry is written.
      window = math.floor(tonumber(args[at + 5]) or 0),
      id = args[at + 6],
      type = args[at + 7],
      version = args[at + 8],
      headers = args[at + 9],
      data = args[at + 10],
    }, cache, now)
    answer[#answer + 1] = status
    answer[#answer + 1] = value
    if status == STALE or status == UNWRITABLE then break end
  end
  count_published(cache)
  return answer
end

redis.register_function('keyrail_publish', keyrail_publish)
redis.register_function{
  function_name = 'keyrail_publish_version',
  callback = function() return PUBLISH_VERSION end,
  flags = { 'no-writes' },
}
