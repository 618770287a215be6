"""Ways to choose schedules: exhaustive exploration, random walks, shrinking, mutant hunts."""
