"""Runs one untrusted WebAssembly call: bytes in, bytes out, under limits. Knows nothing of hooks."""
