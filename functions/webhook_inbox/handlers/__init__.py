"""The toolkit of a handler's author; `webhook_inbox` exports the public names.

`router` and `policies` declare a handler, `event` and `context` are its arguments. `effects` makes
side effects happen once, `completions` waits for jobs, `ordering` keeps runs in order, `forwarding`
has ready-made handlers, `approvals` asks people and records their decisions.
"""
