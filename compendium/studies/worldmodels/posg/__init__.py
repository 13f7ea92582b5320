"""Partially observable stochastic games (POSGs): the formal world models of the study `worldmodels`.

model        the game itself, its JSON form, loading, validation, canonical JSON
abstract     the base class that Python world models extend, and their tabulation
sandbox      running a Python world model nobody has vouched for
scenarios    the authored corpus in data/scenarios
lanes        Lane 1: contract, probe, strict audit
match        Lane 2a: the maximum over renamings; features: the multiset fallback
structure    Lane 2b: what a transition graph looks like
criteria     Lane 3: expected and avoided elements
bisimulation, planning   beyond the paper: granularity, and what a wrong model costs
"""
