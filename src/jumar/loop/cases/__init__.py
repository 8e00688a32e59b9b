"""Case loops: one case refined until its judge is content, and chains of cases that hand on their best.

Nothing is imported here: the child processes of a step pass through this file.
"""
