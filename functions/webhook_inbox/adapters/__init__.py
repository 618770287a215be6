"""The ports over AWS, the process's environment, and what Lambda hands over.

One file per port. Nothing is imported here: each function loads what it uses and no more.
"""
