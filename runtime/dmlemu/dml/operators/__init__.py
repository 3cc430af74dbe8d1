"""The definitions of the operators: one module per operator or family, found by their file names.

``families`` has what several of them share.
"""
