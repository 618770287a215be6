"""A deterministic simulation that runs the shipped code under crashes and interleavings.

scenario ─► world (doubles, virtual time) ◄─ one call at a time ─ ingest, processor, replay,
              │                                                   reconciler, unchanged
              │  the next choice is made by
              ├─ search.exhaustive: every choice in every state
              └─ search.random_walks: a seeded random number generator
                    │
                    └─► invariants, after every step and after convergence ─► shrunk trace
"""
