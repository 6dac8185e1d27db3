"""The program that reads scopes and reconciles them. It meets the control plane over HTTP, and never imports it."""
