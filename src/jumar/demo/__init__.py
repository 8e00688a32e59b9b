"""The offline demo: a real loop that condenses a text until it has lost too much. ``plan.demo_plan`` says how to run it.

Nothing is imported here: each child process of the demo passes through this file.
"""
