"""Studies of replays: what gaps cost on a trace."""
