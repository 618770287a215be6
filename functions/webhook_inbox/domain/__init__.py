"""Records, errors and ports; imports no other package of the library."""
