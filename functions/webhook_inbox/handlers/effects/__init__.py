"""Effects: side effects that happen once over all attempts of a run (G4).

`effect` implements `ctx.effect`, `plan` reads its options, `journal` is its row, `results` stores
its result, `manual_commit` records an operator's. `begin` decides whether it may start, and by
`plan.InDoubt` whether one in doubt is repeated or held.
"""
