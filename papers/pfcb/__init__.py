"""Experiments on P-FCB, private federated procurement by combinatorial bandits (Solanki et al., ECML PKDD 2022)."""
