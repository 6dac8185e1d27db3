"""Where declarations, statuses and output fields live; nothing here talks to a cloud or imports the agent."""
