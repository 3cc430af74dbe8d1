"""The step debugger: runs a program to its end, and shows every moment of the run in the terminal."""
