"""A site under load on the virtual clock, behind the very gate that decides in production."""
