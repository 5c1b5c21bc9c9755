"""Tokens of OAuth 2: checks of signed tokens that platforms send, and access tokens for our own calls.

- ``access_token``: `AccessToken`: the token for the calls of one account, kept until shortly before it
  ends.
- ``issuer_keys``: `IssuerKeys`: the public keys of an issuer, which are fetched when they are needed and
  kept for a day.
- ``signed_tokens``: `check_token`: who signed a token, for whom and until when, checked without I/O.
"""
