-- The four steps of admission, in one atomic move; as in memory.py.
-- ARGV  3 the rules, packed, in the policy's order: kind (0 load, 1 timed, 2 timed and holds what it refuses), at
--       most how many, and microseconds (of the load rule: how many may sleep).
-- A caller's hits are the times at which each will leave, eight big-endian bytes a hit, oldest first.
-- Answers what `answer` says, then for each timed rule the hits that are left, and microseconds until one more is.
local SERVED, REFUSED, DEFERRED = 1, 2, 3
local LOAD, HOLDS_REFUSED = 0, 2
local STAMP = 8
local GRACE = 5000 -- milliseconds for which hits are kept beyond their window

if asleep > 0 then
  local me = asking > 0 and name_of(asking, room)
  if me then
    redis.call('ZADD', CALLED, 'XX', string.format('%.0f', now + CALL), me) -- if it was called, it is heard of now
  end
  call_next() -- a place that came free belongs to who sleeps, before anybody new
  if me and redis.call('ZREM', CALLED, me) + redis.call('ZREM', WAITING, me) > 0 then
    count_sleepers() -- the place kept for it must not stand in its way
  end
end

local rules, timed, position = {}, {}, 1
while position <= #ARGV[3] do
  local rule = {}
  rule.kind, rule.at_most, rule.window, position = struct.unpack('>BI4I8', ARGV[3], position)
  rules[#rules + 1] = rule
  if rule.kind ~= LOAD then
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

-- Those seen once expire first, so a full server that evicts by time to live drops them first, and who is refused last.
local function hold(rule)
  local leaves = now + rule.window
  local last = leaves
  if #rule.log > 0 then -- another window may have been in force
    last = math.max(last, struct.unpack('>I8', rule.log), (struct.unpack('>I8', rule.log, #rule.log - STAMP + 1)))
  end
  rule.log = string.sub(rule.log .. struct.pack('>I8', leaves), -STAMP * rule.at_most)
  local is_full = rule.at_most > 1 and #rule.log >= STAMP * rule.at_most
  local kept = math.ceil((last - now + (is_full and rule.window or 0)) / 1000) + GRACE
  redis.call('SET', rule.key, rule.log, 'PX', string.format('%.0f', kept))
end

-- 2. Compare, in the policy's order.
local verdict, refusing = SERVED, 0
for place, rule in ipairs(rules) do
  if rule.kind == LOAD then
    if load + called >= rule.at_most then
      local sleeps = asking > 0 or (may_sleep == 1 and asleep < rule.window)
      verdict, refusing = sleeps and DEFERRED or REFUSED, place
      break
    end
  elseif #rule.log >= STAMP * rule.at_most then
    -- 3. Hold a refused hit where the rule says so.
    if rule.kind == HOLDS_REFUSED then
      hold(rule)
    end
    verdict, refusing = REFUSED, place
    break
  end
end

if verdict == SERVED then
  -- 4. Hold what is served.
  load, share, admitted = load + 1, share + 1, admitted + 1
  for _, rule in ipairs(timed) do
    hold(rule)
  end
elseif verdict == DEFERRED then
  if asking == 0 then
    arrivals = arrivals + 1
    asking = arrivals
  end
  put_to_sleep(rank, asking, rules[refusing].at_most)
  count_sleepers()
elseif asking > 0 then
  call_next() -- it has left
end

local reply = answer(verdict, refusing)
for _, rule in ipairs(timed) do
  reply[#reply + 1] = rule.at_most - math.floor(#rule.log / STAMP)
  reply[#reply + 1] = #rule.log > 0 and struct.unpack('>I8', rule.log) - now or 0
end
return reply
