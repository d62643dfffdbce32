"""Dates, durations and cycles of ISO-8601, and cron: what a written time means. Pure; it knows no process and no
clock."""
