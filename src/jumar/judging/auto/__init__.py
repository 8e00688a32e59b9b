"""Cheap where it is certain enough, expensive where it is not: intervals, escalation, audits, the average, the guarantee."""
