"""Hosts with hidden limits, over real sockets on loopback; and what is asked of them.

`plan` what each host is like, as data; `site` one host as it answers; `server` the protocol; `histogram` the URLs of
a job; `scrapy_crawl` and `crawlee_crawl` the same job by others, each in a process of its own.
"""
