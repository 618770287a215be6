"""Implementations of the ports: over AWS, over the process, and in memory.

Nothing is imported here, so that each function loads only the modules it uses.
"""
