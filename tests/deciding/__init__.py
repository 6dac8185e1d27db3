"""The pure rules: decisions, drift, judgements, over every situation there is."""
