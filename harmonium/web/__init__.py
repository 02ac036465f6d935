"""The library in a browser: an HTTP API under /api/v1, and the page that uses it.

Each route is thin over a method of `harmonium.Library`. docs/web.md describes the API,
and what protects it.
"""
