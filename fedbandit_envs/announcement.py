"""Names under which releases announce the noise in them: what receivers go by."""

COVARIANCE = "noise_covariance"
"""Names what two arrays' noises have in common, value by value, where they do."""


def variance_of(name: str) -> str:
    """Returns the name under which the noise's variance of an array is announced."""
    return f"{name}_noise_variance"
