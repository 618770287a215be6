"""JSON Web Tokens; imported only by sources that use them, because the library is large."""
