"""Ready-made handlers that forward an event to another service, as one effect each.

    router.on("invoice.*", name="stripe.forward-billing")(forward("billing", path="/hooks"))

A ready-made handler has no name of its own: pass `name=` where it is registered.
"""
