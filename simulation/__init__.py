"""The real code under crashes and interleavings: a deterministic simulation.

scenario ─► world (doubles, virtual time) ◄─ one call at a time ─ the real use cases
│                                                     ingest, processor,
│ which of all that may happen next?                  replay, reconciler
├─ exhaustive: all of it, state by state
└─ walks: a seeded rng
│
└─► invariants at every step, and once all has converged ─► trace, shrunk
"""
