"""Random histories of people, agent and cloud: what never happens, and what always comes to rest."""
