"""Pipelines of compute shaders: root signatures, pipeline states, command signatures."""
