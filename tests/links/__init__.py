"""Links (L1–L17), proved on two clouds that live in memory and two agents that know nothing of each other."""
