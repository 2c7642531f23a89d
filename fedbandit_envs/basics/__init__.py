"""Array types, checks of parameters, the compiler's settings and entry points, which all other modules use."""
