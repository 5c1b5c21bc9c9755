"""The protocol of chat completions, as far as it needs no network: what is asked, and what came."""
