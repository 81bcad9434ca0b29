"""An embedded cluster for laptops and tests: an API server and a node of plain processes."""
