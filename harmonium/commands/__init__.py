"""The groups of commands under `harmonium`, one module each."""
