"""Keys of a run, and everything that encrypts, decrypts or authenticates; the ciphers are those of libraries."""
