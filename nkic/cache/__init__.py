"""What was compiled before, kept in a folder for other processes: for the command and for Python.

An entry is found by a key that says what was asked for, and holds facts about it in JSON and the
bytes of an artifact. Whether it still holds (the files that were read) is the caller's to ask.
"""
