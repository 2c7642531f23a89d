"""Keys of a run, and the encryption, decryption and authentication of data, by the ciphers of well-known libraries."""
