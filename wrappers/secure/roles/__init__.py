"""SAMBA's roles: what each of them does with what it is sent."""
