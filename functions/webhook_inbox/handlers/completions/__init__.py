"""Waits for jobs that outlast a function: a run starts a job and waits for its completion.

`wait` implements `ctx.wait_for`, `journal` the row of a wait, `tokens` the completion tokens,
`results` the end of a job, `receiver` the completion requests, `resume` the wake of a waiting run.
"""
