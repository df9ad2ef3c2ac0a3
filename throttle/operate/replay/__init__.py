"""Yesterday's log through today's policy: what it would have done, and to whom."""
