"""What the site has beyond the pages in this folder; `make docs` runs it."""
