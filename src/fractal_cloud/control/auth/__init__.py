"""Who may do what at the control plane; nothing here knows what a component is."""
