"""P-FCB (Solanki et al., ECML PKDD 2022)."""
