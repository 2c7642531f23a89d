"""Federations whose servers compute: Li and Wang (2022), Huang et al. (2021) and Wang et al. (2020)."""
