"""Tested estimators, and the few things the notebooks share."""
