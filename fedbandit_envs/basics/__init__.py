"""Array types, checks of parameters, the compiler's settings, entry points: the basis of all other modules."""
