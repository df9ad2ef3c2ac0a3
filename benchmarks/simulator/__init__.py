"""A discrete-event simulation of clients and hosts: virtual time, seeded, one process, no I/O.

`clockwork` the events; `hosts` what a site refuses, and how fast it is; `clients` who sends; `situations` the two
joined, with what the host would have given; `score` what came of it.
"""
