"""Effects: side effects that happen once over all attempts of a run (G4).

`effect` implements `ctx.effect`, `plan` reads its options, `journal` is its row, `results` stores
its result, `manual_commit` an operator's. `begin` starts it, or decides a doubt by `plan.InDoubt`.
"""
