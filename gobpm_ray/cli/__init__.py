"""The command line: the engine's front door for people and shell scripts."""
