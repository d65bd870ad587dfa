-- Dropping what every group has settled and retention does not keep.

-- A stream that never runs dry is trimmed once in so many entries.
local TRIM_EVERY = 256

-- Entries that are looked at by one trim, where retention has to look.
local TRIM_LOOKS = 500

-- Where a stream may be cut so that what is below `lowest` goes, except what is kept: the newest `entries`, and whatever
-- is not older than `age`. Nil when nothing goes.
local function cut_of(stream, lowest, keeps)
  local excess = redis.call('XLEN', stream) - keeps.entries
  if excess <= 0 then return end
  local rows = redis.call('XRANGE', stream, '-', '(' .. lowest, 'COUNT', text(math.min(excess, TRIM_LOOKS)))
  local oldest, cut = now_ms() - keeps.age, nil
  for i = 1, #rows do
    local at = tonumber(field_of(rows[i][2], 'at')) or 0
    if keeps.age > 0 and at >= oldest then break end
    cut = id_after(rows[i][1])
  end
  return cut
end

-- A group's row of XINFO GROUPS, to be read with field_of; nil without group.
local function row_of(rows, group)
  for i = 1, #rows do
    if field_of(rows[i], 'name') == group then return rows[i] end
  end
end

-- The oldest entry that one of these groups still needs; nil when one of them was never made on the stream, and needs all of it.
local function lowest_of(stream, groups)
  local rows = redis.call('XINFO', 'GROUPS', stream)
  local lowest
  for i = 1, #groups do
    local info = row_of(rows, groups[i])
    if not info then return end
    local needs
    if field_of(info, 'pending') > 0 then
      needs = redis.call('XPENDING', stream, groups[i])[2]
    else
      needs = id_after(field_of(info, 'last-delivered-id'))
    end
    if not lowest or id_less(needs, lowest) then lowest = needs end
  end
  return lowest
end

-- Deletes what every registered group of the category has settled and retention does not keep. Who knows how far a group has settled the
-- stream names it, which spares the look at the groups where it is the only one.
local function trim(stream, keeps, group, settled)
  local fields = redis.pcall('HGETALL', groups_name(category_of_stream(stream)))
  if failure(fields) then return end
  local groups, lowest = {}, nil
  for i = 1, #fields, 2 do
    if fields[i] ~= KEY_FIELD and fields[i] ~= BACKFILL then groups[#groups + 1] = fields[i] end
  end
  if settled and groups[1] == group and not groups[2] then
    lowest = id_after(settled)
  else
    lowest = lowest_of(stream, groups)
  end
  if lowest and (keeps.entries > 0 or keeps.age > 0) then lowest = cut_of(stream, lowest, keeps) end
  if lowest then redis.call('XTRIM', stream, 'MINID', '=', lowest) end
end
