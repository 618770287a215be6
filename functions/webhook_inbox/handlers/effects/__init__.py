"""Effects: outward side effects that happen once, whatever happens to the run (G4).

`plan` is what a handler asks for, `journal` the effect's row, `beginnings` whether it may begin,
`once` what `ctx.effect` does with these, `by_hand` what a person may say of it, `results` how a
result is stored.
"""
