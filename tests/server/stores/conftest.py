"""What the tests of shared stores share."""

import pytest

from tests import servers
from tests.servers import Server


@pytest.fixture(params=servers.binaries())
def server(request: pytest.FixtureRequest) -> Server:
    return servers.shared(request.param)
