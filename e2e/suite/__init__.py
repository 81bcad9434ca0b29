"""What users see of dlctl in a real cluster; run with ``make e2e``."""
