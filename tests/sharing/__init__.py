"""Several LiveSystems and one resource: who owns it, who only reads it, and what becomes of it at the end."""
