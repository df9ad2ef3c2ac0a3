"""What `benchmarks/storm.py` and `benchmarks/disguised.py` send at which sites; how a round is run and judged."""
