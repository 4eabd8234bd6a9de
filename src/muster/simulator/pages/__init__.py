"""Pages about runs and leagues: one file of HTML with drawings inside it, and nothing from elsewhere."""
