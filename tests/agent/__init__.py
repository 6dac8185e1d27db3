"""The agent at work: its guard, what it remembers and forgets, its patience, and its life as a process."""
