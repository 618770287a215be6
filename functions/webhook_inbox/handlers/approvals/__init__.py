"""Approvals: one person, or enough people of a group, decide about a held run.

`approvers` says who may approve. `gate` asks the people before an effect starts; `announcer` sends
them `messages` with their `links`. `decisions` decides a held run (`hold`), `requests` a request on
the page of a link, `wake` resumes a run that was decided while its attempt ended. `request_row` is
a request's row.
"""
