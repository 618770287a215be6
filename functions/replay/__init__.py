"""Dead or chosen runs → queue again."""
