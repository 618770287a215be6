"""Ports over AWS services, Lambda events, and AWS operations as effects."""
