"""The judge as a service: HTTP over `judge`, whose pool does the work.

A request is a stranger's: its body is checked before it is believed, and what it may hold, in
bytes, candidates and evaluations in flight, has limits.
"""
