"""Real processes on one real host: `site` with a hidden limit, `worker` that crawls it, `run` both."""
