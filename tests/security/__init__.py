"""What a hostile agent, a stolen token, a curious reader and a flood get: nothing."""
