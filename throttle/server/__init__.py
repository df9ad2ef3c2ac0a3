"""The site's half: one ASGI middleware and what it decides with."""
