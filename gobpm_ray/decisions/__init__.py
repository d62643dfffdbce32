"""Decisions of DMN: what a decision is, and its value for given variables; no XML, no process, no clock."""
