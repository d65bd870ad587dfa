-- keyrail_6_record: puts an action on record that changed something in the catalog.
--
-- Keys:      none
-- Arguments: action, target, who, why
-- Answer:    OK; REFUSED and why
-- Prevents:  ids of the audit that are not contiguous: it is written by functions alone.

local function keyrail_record(_, args)
  local fault = type_fault({ { AUDIT, 'stream' } })
  if fault then return { REFUSED, fault } end
  record(args[1], args[2], '', { args[3], args[4] })
  return { OK }
end

redis.register_function{ function_name = 'keyrail_6_record', callback = keyrail_record, flags = { 'allow-oom' } }
