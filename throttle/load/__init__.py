"""A crowd for a test: people, feed readers, crawlers polite and rude; its clockwork and its report.

An open model: what was planned for an instant starts at it, whether or not earlier answers have come, and latencies
count from the plan. A crowd that waits for a slow site would spare it, and hide how slow it was.
"""
