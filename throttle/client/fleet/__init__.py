"""Several workers, one pace per host: `ledger.lua` keeps the books, `shared_pace` is a worker's part in it."""
