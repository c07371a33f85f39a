"""Who may connect, sign in and ask: connections, tokens, sessions, the guard."""
