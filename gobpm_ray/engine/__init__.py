"""The front door for Python programs: open an engine, deploy, start, publish, complete, look, close."""
