"""The page that a reader opens in a browser: one file, with every table of the report and every cell's own record."""
