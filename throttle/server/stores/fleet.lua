-- What admit.lua and report.lua share, and what stands before both when they are sent: the fleet's clock, each
-- worker's share of the load, and who sleeps. TIME is read once, since Redis before 7.2 lets it run on in a script.
--
-- KEYS  1 the fleet, 2 the pause, 3 the workers, 4 who waits, 5 who was called, from 6 on the hits; of one hash tag.
-- ARGV  1 the header, packed; 2 the name of this worker.
--
-- A worker tells, with each call, how many requests run in it by its own books, and how many of its admissions it
-- has heard of. Its share of the load is what runs there plus the admissions on their way to it: so a number that was
-- told before an admission arrived does not overwrite it, and an admission that never arrives is gone with the next
-- call. `epoch` numbers the worker's connections: what was sent on one that it has given up does nothing any more.
--
-- Numbers are packed, since one that is joined to a string loses those of its digits beyond the fourteenth.
local FLEET, PAUSE, WORKERS, WAITING, CALLED = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local ME = ARGV[2]
local RECORD = '>I4I4I8I8I8' -- epoch, running, admitted, taken, the end of the lease
local FLEET_RECORD = '>I8I8I8I8I8I8I8'
local CALL = 2000000 -- microseconds for which a place is kept for who was called
local RANK = 2 ^ 42 -- of the order in which sleepers wake; below it, their arrival
local DAY = 86400000 -- milliseconds; what a key gets that has no shorter time to live
local STAMP = 8 -- bytes a hit: a caller's hits are the times at which each will leave, big-endian, oldest first
local GRACE = 5000 -- milliseconds for which hits are kept beyond their window

local now, epoch, running, taken, lease, rank, asking, room, may_sleep, my_key =
  struct.unpack('>I8I4I4I8I8i4I8I4Bc16', ARGV[1])
local found = redis.call('MGET', FLEET, PAUSE, unpack(KEYS, 6))
local clock, offset, load, lapse, asleep, arrivals = 0, 0, 0, 0, 0, 0
local roomiest = 2 ^ 32 -- none of those who wait has room at a higher load
if found[1] then
  clock, offset, load, lapse, asleep, arrivals, roomiest = struct.unpack(FLEET_RECORD, found[1])
end

-- The clock never goes back: when the server's is set back, it goes on from where it was.
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2] + offset
else
  now = now - 1 + offset -- a test, or a replay, tells the time
end
if now < clock then
  offset = offset + clock - now
  now = clock
end

local is_known, admitted, share = 0, taken, 0
local record = redis.call('HGET', WORKERS, ME)
if record then
  local last_epoch, ran, let_in, heard = struct.unpack(RECORD, record)
  if epoch < last_epoch then
    return {0} -- nobody waits for this answer
  end
  is_known = 1
  admitted = epoch == last_epoch and let_in or 0
  load = load - ran - math.max(0, let_in - heard)
end
share = running + math.max(0, admitted - taken)
load = load + share

local called, ours = 0, {}
local function count_sleepers()
  called = redis.call('ZCARD', CALLED)
  asleep = called + redis.call('ZCARD', WAITING)
end

local function remove_sleepers_of(gone)
  for _, key in ipairs({WAITING, CALLED}) do
    for _, sleeper in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if gone[string.match(sleeper, '^%S+')] then
        redis.call('ZREM', key, sleeper)
      end
    end
  end
end

-- Those seen once expire first, so a full server that evicts by time to live drops them first, and who is refused last.
local function write_hits(key, log, at_most, window, last)
  local is_full = at_most > 1 and #log >= STAMP * at_most
  local kept = math.ceil((last - now + (is_full and window or 0)) / 1000) + GRACE
  redis.call('SET', key, log, 'PX', string.format('%.0f', kept))
end

-- The load anew, from the records of those who live. A worker that is silent for its lease has gone.
local function recount()
  local gone, someone_has_gone = {}, false
  local records = redis.call('HGETALL', WORKERS)
  load, lapse = share, now + lease
  for i = 1, #records, 2 do
    local worker = records[i]
    if worker ~= ME then
      local _, ran, let_in, heard, ends = struct.unpack(RECORD, records[i + 1])
      if ends <= now then
        redis.call('HDEL', WORKERS, worker)
        gone[worker], someone_has_gone = true, true
      else
        load = load + ran + math.max(0, let_in - heard)
        lapse = math.min(lapse, ends)
      end
    end
  end
  redis.call('PEXPIRE', WORKERS, DAY)
  if someone_has_gone then
    remove_sleepers_of(gone)
    count_sleepers()
  end
end

-- One of our sleepers: the load at which there is room for it, and the key under which it is counted with others.
local function name_of(arrival, at_most, key)
  return string.format('%s %.0f %.0f %s', ME, arrival, at_most, key)
end

local function put_to_sleep(order, arrival, at_most, key)
  redis.call('ZADD', WAITING, string.format('%.0f', order * RANK + arrival), name_of(arrival, at_most, key))
  redis.call('PEXPIRE', WAITING, DAY)
  roomiest = math.max(roomiest, at_most)
end

local function call(sleeper, worker, ticket, arrival)
  redis.call('ZREM', WAITING, sleeper)
  redis.call('ZADD', CALLED, string.format('%.0f', now + CALL), sleeper)
  redis.call('PEXPIRE', CALLED, DAY)
  called = called + 1
  if worker ~= ME then
    redis.call('PUBLISH', FLEET .. ':' .. worker, ticket)
  else
    ours[#ours + 1] = arrival
  end
end

-- Wake those for whom there is room, first in order first, each with a place kept for it. Our own are in the reply.
-- Who has none lets others pass: places of a site may have limits of their own.
local function call_next()
  redis.call('ZREMRANGEBYSCORE', CALLED, '-inf', string.format('%.0f', now)) -- called, and not heard of since
  count_sleepers()
  local passed, roomiest_passed = 0, 0
  while load + called < roomiest do
    local sleeper = redis.call('ZRANGE', WAITING, passed, passed)[1]
    if not sleeper then
      roomiest = roomiest_passed
      break
    end
    local worker, ticket, arrival, at_most = string.match(sleeper, '^(%S+) ((%d+) (%d+) %S+)$')
    if load + called < tonumber(at_most) then
      call(sleeper, worker, ticket, tonumber(arrival))
    else
      passed = passed + 1
      roomiest_passed = math.max(roomiest_passed, tonumber(at_most))
    end
  end
end

-- Write down what has changed. What every answer begins with.
local function answer(verdict, rule)
  local fleet = struct.pack(FLEET_RECORD, now, offset, load, lapse, asleep, arrivals, roomiest)
  redis.call('SET', FLEET, fleet, 'PX', DAY)
  redis.call('HSET', WORKERS, ME, struct.pack(RECORD, epoch, running, admitted, taken, now + lease))
  return {verdict, rule, load, share, admitted, asleep, asking, is_known, now, found[2], ours}
end

if now >= lapse then
  recount()
end
