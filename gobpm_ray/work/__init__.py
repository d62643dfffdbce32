"""Workers: programs of their own that fetch jobs, do them, and report."""
