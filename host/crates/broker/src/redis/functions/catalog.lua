-- keyrail_6_catalog: sets the catalog if it has not changed, and shows it to publishers.
--
-- Keys:      the catalog
-- Arguments: version that is expected, the catalog's bytes, backfill word, number of categories; of each: name, key field
--            ('' for none), number of groups, group and ready set of each
-- Answer:    OK and the new version; HELD and the present version; REFUSED and why
-- Prevents:  a publisher that drops what a newly deployed handler has still to see: catalog, groups and the new group's
--            ready set change in one step.

local function keyrail_catalog(keys, args)
  local version = redis.call('HGET', keys[1], 'version') or '0'
  if version ~= args[1] then return { HELD, version } end
  local word, categories, at = args[3], {}, 5
  for i = 1, tonumber(args[4]) do
    local category = { name = args[at], key_field = args[at + 1], groups = {}, known = {} }
    local count = tonumber(args[at + 2])
    at = at + 3
    for _ = 1, count do
      category.groups[#category.groups + 1] = { args[at], args[at + 1] }
      category.known[args[at]] = true
      at = at + 2
    end
    categories[i] = category
    local name = category.name
    local fields, held = redis.call('HGETALL', groups_name(name)), redis.call('HLEN', index_name(name))
    category.before = {}
    for j = 1, #fields, 2 do category.before[fields[j]] = fields[j + 1] end
    local before = category.before[KEY_FIELD] or ''
    if before ~= category.key_field and held > 0 then
      local called = before == '' and 'not partitioned' or 'partitioned by "' .. before .. '"'
      return { REFUSED, 'category ' .. name .. ' is ' .. called .. ' and has entries for ' .. text(held)
        .. ' keys, so its key cannot become "' .. category.key_field .. '"; use a category of its own' }
    end
    if (category.before[BACKFILL] or word) ~= word and held > 0 then
      return { REFUSED, 'category ' .. name .. ' has entries, so its backfill word cannot change to ' .. word }
    end
    for j = 1, #category.groups do redis.call('ZCARD', category.groups[j][2]) end
  end

  version = text(tonumber(version) + 1)
  redis.call('HSET', keys[1], 'version', version, 'bytes', args[2])
  for i = 1, #categories do
    local category = categories[i]
    local groups = groups_name(category.name)
    redis.call('HSET', groups, BACKFILL, word)
    if category.key_field == '' then
      redis.call('HDEL', groups, KEY_FIELD)
    else
      redis.call('HSET', groups, KEY_FIELD, category.key_field)
    end
    for name in pairs(category.before) do
      if name ~= KEY_FIELD and name ~= BACKFILL and not category.known[name] then
        redis.call('HDEL', groups, name)
        -- A process manager's set may still list keys of its other categories.
        redis.call('DEL', ready_name(category.name, name))
      end
    end
    for j = 1, #category.groups do
      local group, ready = category.groups[j][1], category.groups[j][2]
      redis.call('HSET', groups, group, ready)
      if not category.before[group] then
        local keys_of, members = redis.call('HKEYS', index_name(category.name)), {}
        for k = 1, #keys_of do
          if keys_of[k] ~= '' and not string.find(keys_of[k], ':', 1, true) then
            members[#members + 1] = '0'
            members[#members + 1] = keys_of[k]
          end
        end
        call_in_chunks({ 'ZADD', ready, 'NX' }, members, 2)
        -- An empty bell: look through the whole set.
        if #members > 0 then redis.call('PUBLISH', ready, '') end
      end
    end
  end
  redis.call('PUBLISH', keys[1], '')
  return { OK, version }
end

redis.register_function{ function_name = 'keyrail_6_catalog', callback = keyrail_catalog, flags = { 'allow-oom' } }
