"""The pages people look at; they show what the API knows, and hold no logic of their own."""
