"""Who may do what: users, tokens, roles and the audit log. It judges and remembers; it opens no file and no socket."""
