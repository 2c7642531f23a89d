"""Experiments on federations of unlike agents: Shi and Shen (AAAI 2021), Shi, Shen and Yang (AISTATS 2021)."""
