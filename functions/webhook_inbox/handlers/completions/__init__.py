"""Work that takes longer than a function: a run starts it, and waits until it is completed.

`tokens` is what completes it and who may, `endings` what came of it, `rows` the row of a wait,
`waiting` what `ctx.wait_for` does with these, `wakes` how a run that waits is sent again.
"""
