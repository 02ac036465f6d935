"""The library in a browser: an HTTP API under /api/v1, and the page that uses it.

Each route is a thin layer over a function of `harmonium.library`. docs/web.md describes the API,
and what protects it.
"""
