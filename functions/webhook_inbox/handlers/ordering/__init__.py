"""Keeps a handler's runs in order per ordering key, on queues that keep no order.

    pk                                      sk                        row
    ordering_key#{handler}#{ordering_key}   state#{kind}              holder, begun, applied
    same                                    waiter#{number}#{event}   a run ahead of its turn

One run at a time holds an ordering key, until the run's lease ends. Its progress is recorded before
the run is settled, so a crash in between admits no older event.
"""
