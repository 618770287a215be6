"""Effects: side effects that happen once over all attempts of a run (G4).

`effect` implements `ctx.effect`, `plan` checks its options, `journal` is its row and its stored
result, `manual_commit` an operator's result. `begin` starts it, or decides a doubt by
`plan.InDoubt`; `started` is the effect while it runs, as the HTTP client sees it.
"""
