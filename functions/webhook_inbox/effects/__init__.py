"""Effects: outward side effects that happen once, whatever happens to the run (G4).

`plan` is what a handler asks for, `journal` the effect's row, `once` what `ctx.effect` does with
both, `results` how a result is stored.
"""
