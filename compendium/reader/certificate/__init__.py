"""Certificates of a run: written, and checked by running everything again."""
