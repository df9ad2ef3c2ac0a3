"""For those who run a site: what the throttle would do, does and did."""
