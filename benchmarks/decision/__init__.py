"""What one decision costs: time, stalls, memory, and what happens when memory runs out. See `decision_cost.py`."""
