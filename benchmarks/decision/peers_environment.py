"""The environment of the peers: made on demand beside the checkout, never mixed with the project's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers"
REQUIREMENTS = ROOT / "benchmarks" / "peers.txt"
INSTALLED = PEERS / ".installed"


def is_entered() -> bool:
    """This process runs in the peers' environment."""
    return Path(sys.prefix).resolve() == PEERS.resolve()


def enter() -> None:
    """Run the same command again in the peers' environment; makes it first. Does not return."""
    python = PEERS / "bin" / "python"
    if not INSTALLED.exists() or INSTALLED.stat().st_mtime < REQUIREMENTS.stat().st_mtime:
        print(f"making {PEERS.name} for the peers: {REQUIREMENTS.relative_to(ROOT)}", file=sys.stderr)
        _make(python, ["-e", f"{ROOT}[demo]", "-r", str(REQUIREMENTS)])
        INSTALLED.touch()
    os.execv(python, [str(python), *sys.argv])


def python_of(requirements: str, name: str) -> Path:
    """The interpreter of another environment, for peers that do not run in one process with us; makes it first."""
    folder, file = ROOT / name, ROOT / "benchmarks" / requirements
    python, installed = folder / "bin" / "python", folder / ".installed"
    if not installed.exists() or installed.stat().st_mtime < file.stat().st_mtime:
        print(f"making {name} for the peers: {file.relative_to(ROOT)}", file=sys.stderr)
        _make(python, ["-r", str(file)])
        installed.touch()
    return python


def _make(python: Path, needed: list[str]) -> None:
    uv = shutil.which("uv")
    folder = python.parent.parent
    if uv is not None:
        commands = [
            [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), *needed],
        ]
    else:
        commands = [
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needed],
        ]
    for command in commands:
        if subprocess.run(command).returncode != 0:
            sys.exit(
                f"could not make {folder.name}; this failed: {' '.join(command)}\n(--no-peers leaves the peers out)"
            )
