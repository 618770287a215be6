"""Effects: side effects that happen once over all attempts of a run (G4).

`effect` implements `ctx.effect`, `plan` reads its options, `journal` is the effect's row, `begin`
decides whether it may start, `results` stores its result, `manual_commit` records an operator's.
"""
