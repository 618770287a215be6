"""Effects: side effects that happen once over all attempts of a run (G4).

`effect` implements `ctx.effect`, `plan` its options, `journal` its row, `results` its result; `begin`
decides whether it may start, in doubt by `plan.InDoubt`; `manual_commit` is an operator's record.
"""
