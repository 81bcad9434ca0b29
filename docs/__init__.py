"""The documentation: pages, and in `generate` the code that builds a site from them."""
