"""What `benchmarks/redis_store.py` is made of."""
