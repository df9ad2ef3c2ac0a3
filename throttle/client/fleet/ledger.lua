-- One host's books for all workers, in one atomic move: what it bears, who may send when, and whether it rests.
-- A lease is a stretch of time: `count` requests, `gap` µs apart, from `start`. Stretches follow each other, so all
-- workers together send evenly at the rate, and what a killed worker held is over when its stretch is. When the rate
-- changes by much, all are told to draw together (or apart) what they hold: nobody keeps to a rate of long ago.
-- KEYS  1 the books   2 the workers, by when they were last heard of   3 what they saw, until the steering one reads it
-- ARGV  1 now in µs, 0: the server's clock   2 the worker   3 requests it would send; -1: it leaves
--       4 what it saw, not read here   5 the last rest it knew of when it was refused, -1: it was not   6 µs of rest it calls for
--       7 1 if the host has told that rest   8 the rest (its era) that its scout has ended, -1: none
--       9 1 if it steers   10 the rate it would start with or steers by   11 requests it lets be open at once
--       12 what its pace has learned, not read here   13 µs that the last refusal's rest must have, 0: as it is
--       14 the channel   15 the host
-- Answers  1 count   2 µs until the start   3 gap   4 µs after which to ask again if there is no lease   5 era
--          6 µs of rest left; 0: a scout is awaited; -1: it does not rest   7 1 if the lease is a scout's   8 workers   9 1 if it is to steer   10 rate   11 open at
--          once   12 what was learned   13 refusals in a row   14 news for all, or ''   15 now
--          16 when all were told a rate last, and   17 which   18 1 if the turn before was another's   19 … what was seen, oldest first
local SPAN = 0.2 -- seconds' worth of requests that a lease holds, and at least one
local SCOUT = 5000000 -- µs after which a scout that tells nothing is taken for lost
local STEERS = 4000000 -- µs for which one who steers is not replaced
local WORKER = 60000000 -- µs after which a worker that says nothing no longer counts
local TOLD = 0.08 -- part by which the rate has changed when all are told
local SEEN = 400 -- reports that are kept for one who steers
local KEPT = 86400 -- seconds; housekeeping

local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local worker, want = ARGV[2], tonumber(ARGV[3])
local dropped, rest, is_told, ended = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1', tonumber(ARGV[8])

local names = { 'rate', 'slots', 'learned', 'steerer', 'steers_until', 'turn', 'era', 'rests', 'rest_until', 'cut', 'row', 'scout', 'told_at',
  'told_rate', 'last' }
local found = redis.call('HMGET', KEYS[1], unpack(names))
local book = {}
for place, name in ipairs(names) do
  book[name] = found[place] or ''
end
local function number(name)
  return tonumber(book[name]) or 0
end
local turn, era, rests = number('turn'), number('era'), number('rests') == 1
local rest_until, cut, row, scout = number('rest_until'), number('cut'), number('row'), number('scout')

-- 1. Who is there, and who steers: one at a time, whose pace hears what all saw.
if want < 0 then
  redis.call('ZREM', KEYS[2], worker)
  if book.steerer == worker then
    book.steerer, book.steers_until = '', 0
  end
else
  redis.call('ZADD', KEYS[2], string.format('%.0f', now), worker)
  if book.steerer ~= worker and (want > 0 and number('steers_until') <= now) then
    book.steerer = worker
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', now - WORKER))
local steers = book.steerer == worker
if steers then
  book.steers_until = string.format('%.0f', now + STEERS)
end
if book.rate == '' or (steers and ARGV[9] == '1') then
  book.rate, book.slots, book.learned = ARGV[10], ARGV[11], ARGV[12]
end
local rate = tonumber(book.rate)

-- 2. Does the host rest? What a worker was refused before it heard of the last rest is old news, unless it tells more.
local news, is_first = '', false
if ended == era and rests then
  rests, row, scout, era, turn = false, 0, 0, era + 1, math.max(turn, now)
  news = 'open'
end
if rest > 0 then
  is_first = dropped == era
  if is_first then
    row, scout = row + 1, 0
  end
  if is_first or not rests then
    if is_first or is_told then
      rest_until = rests and math.max(rest_until, now + rest) or now + rest
      cut, era, rests, turn, news = now, era + 1, true, rest_until, 'rest' -- all leases are void
    end
  elseif is_told and now + rest > rest_until then
    rest_until, news = now + rest, 'rest'
  end
end
local least = tonumber(ARGV[13])
if steers and least > 0 and rests and cut + least > rest_until then
  rest_until, news = cut + least, 'rest'
end

-- 3. Another rate: what was leased is drawn together, or apart.
local told_rate = number('told_rate')
if math.abs(rate - told_rate) > TOLD * told_rate then
  book.told_at, book.told_rate = string.format('%.0f', now), book.rate
  if not rests and turn > now then
    turn = now + (turn - now) * told_rate / rate
    news = news == '' and 'rate' or news -- after a rest nobody holds a lease
  end
end

-- 4. A lease.
local count, start, gap, ask_again, is_scout = 0, now, math.floor(1000000 / rate + 0.5), 0, 0
local follows = book.last ~= worker
if want > 0 then
  if not rests then
    count = math.min(want, math.max(1, math.floor(rate * SPAN)))
    start = math.max(turn, now)
    turn, book.last = start + count * gap, worker
  elseif now < rest_until then
    ask_again = rest_until - now
  elseif now < scout then
    ask_again = scout - now
  else
    count, is_scout, scout, turn, follows = 1, 1, now + SCOUT, math.max(turn, now) + gap, false
  end
end

-- 5. What was seen is kept for the one who steers, and handed over.
local seen = {}
if steers then
  seen = redis.call('LRANGE', KEYS[3], 0, -1)
  redis.call('DEL', KEYS[3])
end
if ARGV[4] ~= '' then
  local report = string.format('%.0f %d %d %s', now, row, is_first and 1 or 0, ARGV[4])
  if steers then
    seen[#seen + 1] = report
  else
    redis.call('RPUSH', KEYS[3], report)
    redis.call('LTRIM', KEYS[3], -SEEN, -1)
  end
end
local rest_left = rests and math.max(0, rest_until - now) or -1
if news ~= '' then
  news = news == 'rate' and string.format('rate %s %s %s', book.told_at, book.told_rate, ARGV[15])
    or string.format('rest %d %.0f %d %s', era, rest_left, row, ARGV[15])
  redis.call('PUBLISH', ARGV[14], news)
end

redis.call('HSET', KEYS[1], 'rate', book.rate, 'slots', book.slots, 'learned', book.learned, 'steerer', book.steerer,
  'steers_until', book.steers_until, 'turn', string.format('%.0f', turn), 'era', era, 'rests', rests and 1 or 0,
  'rest_until', string.format('%.0f', rest_until), 'cut', string.format('%.0f', cut), 'row', row,
  'scout', string.format('%.0f', scout), 'told_at', book.told_at, 'told_rate', book.told_rate,
  'last', book.last)
for _, key in ipairs(KEYS) do
  redis.call('EXPIRE', key, KEPT)
end
local reply = { count, start - now, gap, ask_again, era, rest_left, is_scout, redis.call('ZCARD', KEYS[2]),
  steers and 1 or 0, book.rate, book.slots, book.learned, row, news, string.format('%.0f', now), book.told_at, book.told_rate,
  follows and 1 or 0 }
for _, report in ipairs(seen) do
  reply[#reply + 1] = report
end
return reply
