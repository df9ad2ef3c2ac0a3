"""Which proxy an origin is asked through, by the environment: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY.

httpx itself looks at the environment only when it is given no transport, so a transport has to.
"""

from urllib.request import getproxies, proxy_bypass


class EnvironmentProxies:
    """As the environment is when this is made."""

    def __init__(self) -> None:
        self._proxies = getproxies()

    def proxy(self, scheme: str, authority: str) -> str | None:
        """`http://127.0.0.1:3128` for an origin that is asked through it, or None."""
        proxy = self._proxies.get(scheme) or self._proxies.get("all")
        if not proxy or proxy_bypass(authority):
            return None
        return proxy if "://" in proxy else f"http://{proxy}"
