"""The program that reads scopes and reconciles them; it meets the control plane over HTTP only, and never imports it."""
