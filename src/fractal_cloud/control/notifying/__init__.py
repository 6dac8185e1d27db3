"""Sends notifications: what they look like, to which addresses, and when. What is queued is the store's business."""
