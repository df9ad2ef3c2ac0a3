-- The four steps of admission, in one atomic move; as in memory.py.
-- ARGV  3 the rules, packed, in the policy's order: kind (0 load, 1 timed, 2 timed and holds what it refuses), at
--       most how many, from which load on (of a load rule: how many sleepers a key), and microseconds (of a load
--       rule: how many may sleep); from 4 on, for each load rule that counts sleepers by key, that key.
-- Answers what `answer` says, then for each timed rule the hits that are left (-1: served without asking it), and
-- microseconds until one more is.
local SERVED, REFUSED, DEFERRED = 1, 2, 3
local LOAD, HOLDS_REFUSED = 0, 2
local NO_KEY, ANY = string.rep('-', 16), 2 ^ 32 - 1 -- sleepers are not counted by key

if asleep > 0 then
  local me = asking > 0 and name_of(asking, room, my_key)
  if me then
    redis.call('ZADD', CALLED, 'XX', string.format('%.0f', now + CALL), me) -- if it was called, it is heard of now
  end
  call_next() -- a place that came free belongs to who sleeps, before anybody new
  if me then -- the place kept for it must not stand in its way
    redis.call('ZREM', CALLED, me)
    redis.call('ZREM', WAITING, me)
    count_sleepers()
  end
end

local rules, timed, position, keys = {}, {}, 1, 3
while position <= #ARGV[3] do
  local rule = {}
  rule.kind, rule.at_most, rule.from_load, rule.window, position = struct.unpack('>BI4I4I8', ARGV[3], position)
  rules[#rules + 1] = rule
  if rule.kind == LOAD then
    rule.sleepers_per_key, rule.sleeping_max, rule.key = rule.from_load, rule.window, NO_KEY
    if rule.sleepers_per_key < ANY then
      keys = keys + 1
      rule.key = ARGV[keys]
    end
  else
    -- 1. Forget what has expired.
    timed[#timed + 1] = rule
    rule.key = KEYS[5 + #timed]
    local log, first = found[2 + #timed] or '', 1
    while first < #log and struct.unpack('>I8', log, first) <= now do
      first = first + STAMP
    end
    rule.log = string.sub(log, math.max(first, #log - STAMP * rule.at_most + 1)) -- the limit may have been lowered
  end
end

local function hold(rule)
  local leaves = now + rule.window
  local last = leaves
  if #rule.log > 0 then -- another window may have been in force
    last = math.max(last, struct.unpack('>I8', rule.log), (struct.unpack('>I8', rule.log, #rule.log - STAMP + 1)))
  end
  rule.log = string.sub(rule.log .. struct.pack('>I8', leaves), -STAMP * rule.at_most)
  write_hits(rule.key, rule.log, rule.at_most, rule.window, last)
end

-- Counted one by one: they are few, who asks is about to sleep, and a count beside them could go wrong.
local function sleepers_of(key)
  local count = 0
  for _, sleepers in ipairs({WAITING, CALLED}) do
    for _, sleeper in ipairs(redis.call('ZRANGE', sleepers, 0, -1)) do
      if string.sub(sleeper, -#key) == key then
        count = count + 1
      end
    end
  end
  return count
end

local function has_bed(rule)
  if may_sleep == 0 or asleep >= rule.sleeping_max then
    return false
  end
  return rule.sleepers_per_key == ANY or sleepers_of(rule.key) < rule.sleepers_per_key
end

-- 2. Compare, in the policy's order.
local verdict, refusing = SERVED, 0
for place, rule in ipairs(rules) do
  if rule.kind == LOAD then
    if load + called >= rule.at_most then
      verdict = (asking > 0 or has_bed(rule)) and DEFERRED or REFUSED
      refusing = place
      break
    end
  elseif load + called >= rule.from_load then
    rule.is_asked = true
    if #rule.log >= STAMP * rule.at_most then
      -- 3. Hold a refused hit where the rule says so.
      if rule.kind == HOLDS_REFUSED then
        hold(rule)
      end
      verdict, refusing = REFUSED, place
      break
    end
  end
end

if verdict == SERVED then
  -- 4. Hold what is served.
  load, share, admitted = load + 1, share + 1, admitted + 1
  for _, rule in ipairs(timed) do
    if rule.is_asked then
      hold(rule)
    end
  end
elseif verdict == DEFERRED then
  if asking == 0 then
    arrivals = arrivals + 1
    asking, room, my_key = arrivals, rules[refusing].at_most, rules[refusing].key
  end
  put_to_sleep(rank, asking, room, my_key)
  call_next() -- the place that was kept for it may do for another
elseif asking > 0 then
  call_next() -- it has left
end

local reply = answer(verdict, refusing)
for _, rule in ipairs(timed) do
  local is_told = rule.is_asked or verdict ~= SERVED
  reply[#reply + 1] = is_told and rule.at_most - math.floor(#rule.log / STAMP) or -1
  reply[#reply + 1] = #rule.log > 0 and struct.unpack('>I8', rule.log) - now or 0
end
return reply
