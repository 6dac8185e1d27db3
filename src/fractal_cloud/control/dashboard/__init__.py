"""The pages of the control plane; they show what the API knows, and hold no logic of their own."""
