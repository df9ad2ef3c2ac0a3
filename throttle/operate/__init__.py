"""For those who run a site: its configuration, what became of its requests, and yesterday's log played again."""
