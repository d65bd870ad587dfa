-- keyrail_6_letters: a page of dead letters; keyrail_6_purge: drops one; keyrail_6_redrive: publishes one again.
--
-- Keys:      none to look; the dead letters of the category or key to drop and to publish
-- Arguments: to look: category, `all` or `one`, key, rank of the key to begin with, sequence to begin with, limit
--            to drop: category, key, id, who, reason, target
--            to publish: category, key, id, who, reason, target, event id, type, version, headers, data, group, 1
--            for the backfill lane
-- Answer:    to look: rank and sequence to go on with or '' and '', then key, entries, …. To drop: OK or NOT_HEAD. To publish: OK
--            and the new entry's id, NOT_HEAD, or REFUSED and why
-- Prevents:  a letter that was published twice by two operators, or lost between the two steps.

local function keyrail_letters(_, args)
  local category, all, rank, sequence = args[1], args[2] == 'all', tonumber(args[4]), tonumber(args[5])
  local left, shown, on, answer = tonumber(args[6]), 0, nil, {}
  -- Every key that is listed holds a letter, so no more keys than letters are looked at.
  local keys = all and redis.call('ZRANGE', dlqs_name(category), text(rank), text(rank + left - 1)) or { args[3] }
  while shown < #keys and left > 0 do
    local dlq, from = dlq_name(category, keys[shown + 1]), '-'
    local first = redis.call('XRANGE', dlq, '-', '+', 'COUNT', 1)[1]
    if first and sequence > 0 then
      local epoch, begins = id_parts(first[1])
      from = text(epoch) .. '-' .. text(math.max(sequence, begins))
    end
    local rows = redis.call('XRANGE', dlq, from, '+', 'COUNT', left + 1)
    answer[#answer + 1] = keys[shown + 1]
    answer[#answer + 1] = rows
    if #rows > left then
      local _, next_sequence = id_parts(rows[#rows][1])
      rows[#rows] = nil
      on = { text(rank + shown), text(next_sequence) }
      break
    end
    left, sequence, shown = left - #rows, 0, shown + 1
  end
  if not on and all and redis.call('ZCARD', dlqs_name(category)) > rank + shown then on = { text(rank + shown), '0' } end
  return { on and on[1] or '', on and on[2] or '', answer }
end

-- The fault of dropping a letter, or nil.
local function letter_fault(dlq, category, id)
  local fault = type_fault({ { dlq, 'stream' }, { dlqs_name(category), 'zset' }, { AUDIT, 'stream' } })
  if fault then return { REFUSED, fault } end
  if #redis.call('XRANGE', dlq, id, id) == 0 then return { NOT_HEAD } end
end

local function keyrail_purge(keys, args)
  local category, key, id, by = args[1], args[2], args[3], { args[4], args[5] }
  local fault = letter_fault(keys[1], category, id)
  if fault then return fault end
  drop_letter(category, key, id)
  record('purge', args[6], id, by)
  return { OK }
end

local function keyrail_redrive(keys, args)
  local category, key, id, by = args[1], args[2], args[3], { args[4], args[5] }
  local fault = letter_fault(keys[1], category, id)
  if fault then return fault end
  local cache = {}
  local known, why = category_of(category, cache)
  if not known then return { REFUSED, 'category ' .. category .. ': ' .. why } end
  if redis.call('HEXISTS', groups_name(category), args[12]) == 0 then
    return { REFUSED, 'the handler ' .. args[12] .. ', for which it was set aside, is not registered on ' .. category
      .. ' any more; deploy it, or purge the dead letter' }
  end
  local status, value = publish_one({
    category = category, key = key, key_field = known.key_field, backfill = args[13] == '1', window = 0, id = args[7],
    type = args[8], version = args[9], headers = args[10], data = args[11],
  }, cache, now_ms())
  if status ~= PUBLISHED then return { REFUSED, value } end
  count_published(cache)
  drop_letter(category, key, id)
  record('redrive', args[6], id, by)
  return { OK, value }
end

redis.register_function{ function_name = 'keyrail_6_letters', callback = keyrail_letters, flags = { 'no-writes' } }
redis.register_function{ function_name = 'keyrail_6_purge', callback = keyrail_purge, flags = { 'allow-oom' } }
redis.register_function('keyrail_6_redrive', keyrail_redrive)
