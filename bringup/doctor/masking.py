"""Text without its secrets: what the doctor shows of what people paste, and what it collects.

facts/evidence.sh masks on the host before anything leaves it; this is the same and more, for every line that is shown or kept.
"""

from __future__ import annotations

import re

_NAMES = r"(?:\w*(?:password|passwd|passphrase|secret|token|api_?key|access_?key|apikey|credential)s?|auth|identitytoken|registrytoken)"
_BEGINNINGS = r"nvapi-|hf_|gh[oprsu]_|github_pat_|dckr_(?:pat|oat)_|glpat-|xox[abprs]-|sk-|AKIA|ASIA|eyJ"
RULES = (
    # logins in addresses: a password may hold an @
    (re.compile(r"(://)[^/\s\"']*@"), r"\1***@"),
    # user names in paths
    (re.compile(r"((?:/home|/Users|/media)/|\\Users\\)[^/\\\s\"':,;]+"), r"\1***"),
    # tokens by the beginnings that their makers gave them, JSON Web Tokens, private keys
    (re.compile(rf"\b({_BEGINNINGS})[A-Za-z0-9_.+/=-]{{6,}}"), r"\1***"),
    (re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:(?=-----END)|\Z)"), r"\1***"),
    # Authorization: Bearer x; Basic x
    (re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{6,}"), r"\1\2***"),
    # password=x, "token": "x", --password x, X-Amz-Signature=x
    (re.compile(rf"(?i)(\b{_NAMES}[\"']?\s*[=:]\s*[\"']?)(?!\*\*\*|[\"'{{\[]|$)[^\s\"'&,;]+"), r"\1***"),
    (re.compile(r"(?i)([?&](?:sig|signature|x-amz-\w+|token|key)=)[^\s\"'&]+"), r"\1***"),
    (re.compile(r"(?i)(--(?:password|token|api-key|secret)[ =])\S+"), r"\1***"),
    # docker login -p x, curl -u name:x
    (re.compile(r"(\blogin\b[^\n|;]*\s-p\s*)\S+"), r"\1***"),
    (re.compile(r"(\b(?:curl|wget)\b[^\n|;]*\s-u\s*)\S+"), r"\1***"),
)  # fmt: skip


def masked(text: str) -> str:
    """The text with *** in the place of tokens, passwords, logins and user names in paths."""
    for pattern, shown in RULES:
        text = pattern.sub(shown, text)
    return text
