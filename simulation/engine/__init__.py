"""The simulated world: doubles, virtual time, stepped programs, and the choices that change it."""
