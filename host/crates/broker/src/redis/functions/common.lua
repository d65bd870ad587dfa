-- What every function shares: the first value of an answer, time, ids, the fence.

-- Stands first in every answer; redis/decode.rs knows them.
local OK, FENCED, NOT_HEAD, REFUSED, HELD, HALTED, PAUSED, DRY, RELEASED = 0, 1, 2, 3, 4, 5, 6, 7, 8
-- Values in one `unpack`, and rows in one read. Lua's stack ends a little above 8,000; 1,000 is our own limit.
local CHUNK, PAGE = 800, 500

-- How far a stream is settled of which nothing is: below every id, and followed by the first one of any epoch.
local NOTHING = '0-1'

-- Milliseconds since 1970 by the server's clock.
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Numbers travel as text: Lua would write a large one as 1e+14.
local function text(number) return string.format('%.0f', number) end

-- What a `pcall` failed with, or nil.
local function failure(reply)
  if type(reply) == 'table' then return reply.err end
end

-- The value of a name in a list of names and values, which is how the server tells of things.
local function field_of(list, name)
  for i = 1, #list, 2 do
    if list[i] == name then return list[i + 1] end
  end
end

local function is_missing_group(failed) return string.sub(failed, 1, 7) == 'NOGROUP' end

local function id_parts(id)
  local epoch, sequence = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(epoch), tonumber(sequence)
end

-- Ids compare as two integers, never as text.
local function id_less(a, b)
  local a_epoch, a_sequence = id_parts(a)
  local b_epoch, b_sequence = id_parts(b)
  return a_epoch < b_epoch or (a_epoch == b_epoch and a_sequence < b_sequence)
end

local function id_after(id)
  local epoch, sequence = string.match(id, '^(%d+)-(%d+)$')
  return epoch .. '-' .. text(sequence + 1)
end

-- Whether an id may directly follow another: the next sequence, or the first of a later epoch.
local function follows(id, next)
  local epoch, sequence = id_parts(id)
  local next_epoch, next_sequence = id_parts(next)
  return (next_epoch == epoch and next_sequence == sequence + 1) or (next_epoch > epoch and next_sequence == 0)
end

-- A category has no colon, so it is what stands before the first one.
local function category_of_stream(stream) return string.match(stream, '^[^:]+') end

-- How long settled entries are kept, from one argument: how many, and how old in ms.
local NO_RETENTION = { entries = 0, age = 0 }
local function retention_of(argument)
  if argument == '0 0' then return NO_RETENTION end
  local entries, age = string.match(argument, '^(%d+) (%d+)$')
  return { entries = tonumber(entries), age = tonumber(age) }
end

local function exists(key) return redis.call('EXISTS', key) == 1 end

-- The fence. A lease holds its owner's token, the place of the stream that has the head (0 for none), and how far each of the
-- partition's streams is settled: `host-1:7 1 1-5 0-1`.
local function lease_of(scope, group) return redis.call('GET', lease_name(scope, group)) or '' end

local function is_held_by(lease, token)
  return string.sub(lease, 1, #token) == token and (#lease == #token or string.sub(lease, #token + 1, #token + 1) == ' ')
end

-- Whether the caller still owns the partition.
local function is_owner(scope, group, token) return is_held_by(lease_of(scope, group), token) end

-- Owner and generation, without the rest; '' for no lease.
local function token_of(lease) return string.match(lease, '^[^:]*:%d+') or '' end

-- The place of the stream that has the head, and how far each stream is settled, from a lease of this token.
local function parts_of(lease, token)
  local place, primary, backfill = string.match(lease, '^ (%d+) (%S+) (%S+)$', #token + 1)
  if place then return tonumber(place), { primary, backfill } end
  local serving, settled = 0, {}
  for part in string.gmatch(string.sub(lease, #token + 1), '%S+') do
    if string.find(part, '-', 1, true) then settled[#settled + 1] = part else serving = tonumber(part) end
  end
  return serving, settled
end

local function lease_text(token, serving, settled)
  return token .. ' ' .. serving .. ' ' .. table.concat(settled, ' ')
end

-- What is kept of a partition's last owner: its token, and the place of the stream that has the head in its hands, or would have the
-- next one. Where that is 0 its end is no crash.
local function owner_text(token, serving) return token .. ' ' .. serving end

local function serving_of(owner) return owner and tonumber(string.match(owner, ' (%d+)$')) or 0 end

-- Calls `command key... values...` in pieces that `unpack` can take. `step` values belong together.
local function call_in_chunks(head, values, step, tail)
  local size = CHUNK - CHUNK % step
  for from = 1, #values, size do
    local call = {}
    for i = 1, #head do call[i] = head[i] end
    for i = from, math.min(from + size - 1, #values) do call[#call + 1] = values[i] end
    if tail then call[#call + 1] = tail end
    redis.call(unpack(call))
  end
end
